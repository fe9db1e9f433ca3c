// One source for all instruction sets, vectorised by the compiler.
#include <cmath>
#include <limits>

#include "kernels/op.h"
#include "kernels/quantized_mean/quantized_mean.h"

namespace sparcml {
namespace {

constexpr std::uint32_t kExponent = 0x7F800000;  // all ones: infinity or NaN
constexpr std::size_t kPart = 1024;

// Counts in 32 bits: one part at a time, so that the compiler uses full vectors.
template <class Value>
Found examine(std::size_t n, Value value) {
  Found found;
  for (std::size_t start = 0; start < n; start += kPart) {
    const std::size_t end = n - start < kPart ? n : start + kPart;
    std::uint32_t nonzeros = 0, infinite = 0;
    SPARCML_IVDEP
    for (std::size_t i = start; i < end; ++i) {
      const std::uint32_t b = bits(value(i));
      nonzeros += b != 0;
      infinite |= (b & kExponent) == kExponent;
    }
    found.nonzeros += nonzeros;
    found.finite &= infinite == 0;
  }
  return found;
}

// A large result is not read soon: it is written past the caches if it starts at a cache line.
inline bool past_caches(const float* to) {
  return reinterpret_cast<std::uintptr_t>(to) % 32 == 0;
}

void subtract(const float* seen, std::size_t n, float* corrected) {
  SPARCML_IVDEP
  for (std::size_t i = 0; i < n; ++i) corrected[i] = corrected[i] - seen[i];
}

}  // namespace

namespace SPARCML_NAMESPACE {

Found correct(CorrectedGradient input) {
  const float *r = input.residual, *g = input.gradient;
  if (r == nullptr) return examine(input.size, [=](std::size_t i) { return g[i]; });
  float* out = input.corrected;
  const float scale = input.scale;
  return examine(input.size, [=](std::size_t i) {
    const float x = canonical(scale * r[i] + g[i]);
    out[i] = x;
    return x;
  });
}

// Writes (sum + last) / ranks. A division by a power of two is a multiplication.
void add_last(const float* sum, const float* last, float ranks, const float* seen,
              std::size_t n, float* mean, float* corrected) {
  int exponent;
  const bool power = std::frexp(ranks, &exponent) == 0.5f;
  const float factor = 1 / ranks;
  std::size_t i = 0;
#ifdef SPARCML_AVX2
  if (power && past_caches(mean)) {
    const __m256 by = _mm256_set1_ps(factor);
    const __m256 nan = _mm256_set1_ps(std::numeric_limits<float>::quiet_NaN());
    for (; i + 8 <= n; i += 8) {
      const __m256 x = _mm256_add_ps(_mm256_loadu_ps(sum + i), _mm256_loadu_ps(last + i));
      const __m256 y = _mm256_blendv_ps(x, nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
      _mm256_stream_ps(mean + i, _mm256_mul_ps(y, by));
    }
  }
#endif
  if (power) {
    SPARCML_IVDEP
    for (; i < n; ++i) mean[i] = canonical(sum[i] + last[i]) * factor;
  } else {
    SPARCML_IVDEP
    for (; i < n; ++i) mean[i] = canonical(sum[i] + last[i]) / ranks;
  }
  if (corrected != nullptr) subtract(seen, n, corrected);
}

}  // namespace SPARCML_NAMESPACE
}  // namespace sparcml
