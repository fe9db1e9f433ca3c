#include "kernels/quantized_mean/quantized_mean.h"

#include <algorithm>
#include <atomic>

#include "kernels/dense/dense.h"

#ifdef SPARCML_X86
#include <xmmintrin.h>
#endif

namespace sparcml {
namespace {

constexpr std::size_t kBlock = kMaxBucket;  // values; three blocks fit into the first cache

// Calls work(first bucket, first value, number of values) for blocks of whole buckets.
template <class Work>
void by_blocks(std::size_t n, const Grid& grid, Work work) {
  const std::size_t together = kBlock / grid.bucket;
  by_buckets(n, grid, [&](std::size_t bucket, std::size_t at, std::size_t count) {
    while (count > 0) {
      const std::size_t size = std::min(count, together * grid.bucket);
      work(bucket, at, size);
      bucket += together;
      at += size;
      count -= size;
    }
  });
}

// Orders what was written past the caches before later writes.
void finish_writes() {
#ifdef SPARCML_X86
  _mm_sfence();
#endif
}

}  // namespace

Found to_grid_corrected(CorrectedGradient input, Grid grid, std::uint64_t seed,
                        std::uint8_t* code) {
  const std::size_t n = input.size;
  std::uint8_t* const codes = code + 4 * buckets_of(n, grid.bucket);
  std::atomic<std::size_t> nonzeros{0};
  std::atomic<bool> finite{true};
  by_blocks(n, grid, [&](std::size_t bucket, std::size_t at, std::size_t size) {
    CorrectedGradient block = input;
    const bool feedback = input.residual != nullptr;
    block.gradient += at;
    block.size = size;
    if (feedback) {
      block.residual += at;
      block.corrected += at;
    }
    const Found found = correct(block);
    nonzeros.fetch_add(found.nonzeros, std::memory_order_relaxed);
    if (!found.finite) finite.store(false, std::memory_order_relaxed);
    to_grid_from(feedback ? block.corrected : block.gradient, size, grid, seed, bucket,
                 code + 4 * bucket, codes + at / 8 * grid.bits);
  });
  return {nonzeros, finite};
}

void mean_from_grid(const std::uint8_t* const* codes, std::size_t ranks, std::size_t own,
                    std::size_t n, Grid grid, float* mean, float* corrected) {
  const std::size_t norms = 4 * buckets_of(n, grid.bucket);
  by_blocks(n, grid, [&](std::size_t bucket, std::size_t at, std::size_t size) {
    // The first sum is with -0.0, which changes no bit.
    alignas(64) float sum[kBlock], next[kBlock], seen[kBlock];
    if (ranks == 1) std::fill_n(sum, size, -0.0f);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      float* const values = rank == 0 && ranks > 1 ? sum : next;
      from_grid_to(codes[rank] + 4 * bucket, codes[rank] + norms + at / 8 * grid.bits, size,
                   grid, values);
      const bool is_seen = rank == own && corrected != nullptr;
      if (rank + 1 == ranks) {
        add_last(sum, values, static_cast<float>(ranks), is_seen ? values : seen, size,
                 mean + at, corrected == nullptr ? nullptr : corrected + at);
      } else {
        if (is_seen) std::copy_n(values, size, seen);
        if (rank > 0) combine_dense<float>(Op::sum, sum, values, sum, size);
      }
    }
  });
  finish_writes();
}

}  // namespace sparcml
