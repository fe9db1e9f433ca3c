#include "kernels/grid/generic.h"
#include "kernels/vectors.h"

namespace sparcml::avx2 {
namespace {

class Coder {
 public:
  Coder(const Steps& steps, Random random)
      : random_(random),
        multiplier_(_mm256_set1_ps(steps.multiplier)),
        limit_(_mm256_set1_ps(steps.limit)),
        negative_limit_(_mm256_set1_ps(-steps.limit)),
        nan_code_(_mm256_set1_epi8(static_cast<char>(steps.nan_code))) {}

  __m256i next(const float* v) {
    const __m256i a = level(v), b = level(v + 8), c = level(v + 16), d = level(v + 24);
    return _mm256_max_epi8(to_bytes(a, b, c, d), nan_code_);  // NaN is -128 here
  }

 private:
  // v - v turns infinities into NaN. It is the second operand of both min and max, so it is
  // kept, and it converts to -2^31. The largest sum is 2^31 - 1.
  __m256i level(const float* from) {
    const __m256 v = _mm256_loadu_ps(from);
    __m256 x = _mm256_add_ps(_mm256_mul_ps(v, multiplier_), _mm256_sub_ps(v, v));
    x = _mm256_max_ps(negative_limit_, _mm256_min_ps(limit_, x));
    const __m256i random = _mm256_srli_epi32(random_.next8(), 32 - kFraction);
    return _mm256_srai_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(x), random), kFraction);
  }

  Random random_;
  __m256 multiplier_, limit_, negative_limit_;
  __m256i nan_code_;
};

template <bool past_cache>
struct Loops {
  static void codes(const float* v, std::size_t n, const Steps& steps, Random random,
                    std::int8_t* codes) {
    if (steps.factor != 1)
      ScalarLoops::codes(v, n, steps, random, codes);
    else
      all_codes(v, n, Coder(steps, random), codes);
  }

  static bool has_direct(unsigned bits) { return bits == 2 || bits == 4; }

  static void direct(const std::uint8_t* packed, std::size_t n, unsigned bits,
                     const Values& bucket, float* v) {
    look_up<past_cache>(packed, n, bits, bucket, v);
  }

  static void values(const std::int8_t* codes, std::size_t n, const Values& bucket, float* v) {
    std::size_t i = 0;
    if (bucket.unscaled) {
      const __m256 step = _mm256_set1_ps(bucket.step), nan = _mm256_set1_ps(kNaN);
      const __m256i nan_code = _mm256_set1_epi32(bucket.nan_code);
      for (; i + 8 <= n; i += 8) {
        const __m256i code =
            _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes + i)));
        const __m256 x = _mm256_mul_ps(_mm256_cvtepi32_ps(code), step);
        const __m256 missing = _mm256_castsi256_ps(_mm256_cmpeq_epi32(code, nan_code));
        store<past_cache>(v + i, _mm256_blendv_ps(x, nan, missing));
      }
    }
    for (; i < n; ++i) v[i] = bucket.of(codes[i]);
  }
};

}  // namespace

void to_grid(const float* values, std::size_t n, Grid grid, std::uint64_t seed,
             std::uint8_t* code) {
  encode_buckets<Loops<false>, Steps>(values, n, grid, seed, code);
}

void from_grid(const std::uint8_t* code, std::size_t n, Grid grid, float* values) {
  if (past_caches(values, n) && grid.bucket % 8 == 0) {
    decode_buckets<Loops<true>, Values>(code, n, grid, values);
    _mm_sfence();
  } else {
    decode_buckets<Loops<false>, Values>(code, n, grid, values);
  }
}

void to_grid_from(const float* values, std::size_t n, Grid grid, std::uint64_t seed,
                  std::uint64_t first, std::uint8_t* norms, std::uint8_t* codes) {
  encode_some<Loops<false>, Steps>(values, n, grid, seed, first, norms, codes);
}

void from_grid_to(const std::uint8_t* norms, const std::uint8_t* codes, std::size_t n,
                  Grid grid, float* values) {
  decode_some<Loops<false>, Values>(norms, codes, n, grid, values);
}

}  // namespace sparcml::avx2
