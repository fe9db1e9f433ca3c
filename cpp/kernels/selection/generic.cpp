// Selections for all instruction sets. squares.h, magnitude.h and keep.h have the loops that
// differ.
#include "kernels/selection/above.h"
#include "kernels/selection/buckets.h"
#include "kernels/selection/exact.h"

namespace sparcml::SPARCML_NAMESPACE {

template <class T>
void top_k(const T* values, std::size_t size, std::size_t k, EntryBuffer<T> buffer) {
  if (k == 0) return;
  const auto at = [&](std::size_t i) { return values[i]; };
  Candidates<T> candidates{buffer, k, sampled_bound<T>(size, k, at), kCuts};
  scan_in_parts(candidates, size, [&](std::size_t) { return Vector<T>{values}; });
  finish(candidates, values, size);
}

template <class T>
double top_k_with_residual(ResidualInput<T> input, std::size_t k, EntryBuffer<T> buffer) {
  if (k == 0) return add_residual_any(input);
  const Key<T> bound = with_term(input, [&](auto term) {
    const auto at = [&](std::size_t i) {
      return canonical(input.scale * input.residual[i] + term.peek(i));
    };
    return sampled_bound<T>(input.size, k, at);
  });
  Candidates<T> candidates{buffer, k, bound, kCuts};
  BlockSquares squares(input.size);
  scan_in_parts(candidates, input.size,
                [&](std::size_t begin) { return ResidualAdder<T>(input, squares, begin); });
  finish<T>(candidates, input.out, input.size);
  for (std::size_t i = 0; i < k; ++i) input.out[buffer.indices[i]] = 0;
  return squares.sum();
}

template <class T>
void bucket_top_k(const T* values, std::size_t size, std::size_t k, std::size_t bucket,
                  EntryBuffer<T> buffer) {
  for_bucket_parts(size, k, bucket, buffer,
                   [&](std::size_t start, std::size_t end, EntryBuffer<T> out) {
                     Buckets<T> buckets(k, std::min(bucket, size), out);
                     for (; start < end; start += bucket)
                       buckets.select(values, start, std::min(bucket, size - start));
                   });
}

template <class T>
double bucket_top_k_with_residual(ResidualInput<T> input, std::size_t k, std::size_t bucket,
                                  EntryBuffer<T> buffer) {
  BlockSquares squares(input.size);
  for_bucket_parts(input.size, k, bucket, buffer,
                   [&](std::size_t start, std::size_t end, EntryBuffer<T> out) {
                     Buckets<T> buckets(k, std::min(bucket, input.size), out);
                     ResidualAdder<T> adder(input, squares, start);
                     const std::uint32_t* cleared = out.indices;
                     for (; start < end; start += bucket) {
                       const std::size_t size = std::min(bucket, input.size - start);
                       adder.until(start + size);
                       buckets.select(input.out, start, size);
                       const std::uint32_t* last = cleared + std::min(k, size);
                       for (; cleared < last; ++cleared) input.out[*cleared] = 0;
                     }
                   });
  return squares.sum();
}

template <class T>
std::size_t at_least(const T* values, std::size_t size, T threshold, EntryBuffer<T> buffer) {
  Above<T> above{buffer, key(threshold) - 1};
  Vector<T> vector{values};
  above.scan(vector, size);
  return above.count;
}

template <class T>
double at_least_with_residual(ResidualInput<T> input, T threshold, EntryBuffer<T> buffer,
                              std::size_t& count) {
  Above<T> above{buffer, key(threshold) - 1};
  BlockSquares squares(input.size);
  {
    ResidualAdder<T> adder(input, squares);
    above.scan(adder, input.size);
  }
  count = above.count;
  return squares.sum();
}

template <class T>
double add_residual(ResidualInput<T> input) {
  return add_residual_any(input);
}

template <class T>
void block_squared_norms(const T* values, std::size_t size, std::size_t block, double* out) {
  for (std::size_t start = 0; start < size; start += block)
    *out++ = canonical(squared_norm(values + start, std::min(block, size - start)));
}

SPARCML_FOR_REALS(top_k);
SPARCML_FOR_REALS(top_k_with_residual);
SPARCML_FOR_REALS(bucket_top_k);
SPARCML_FOR_REALS(bucket_top_k_with_residual);
SPARCML_FOR_REALS(at_least);
SPARCML_FOR_REALS(at_least_with_residual);
SPARCML_FOR_REALS(add_residual);
SPARCML_FOR_REALS(block_squared_norms);

}  // namespace sparcml::SPARCML_NAMESPACE
