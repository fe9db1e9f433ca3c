#include <immintrin.h>

#include "kernels/grid/generic.h"

namespace sparcml::avx2 {
namespace {

// 32 values at a time, as whole bytes.
class Coder {
 public:
  Coder(const Steps& steps, Random random)
      : random_(random),
        times_(_mm256_set1_ps(steps.times)),
        most_(_mm256_set1_ps(steps.most)),
        least_(_mm256_set1_ps(-steps.most)),
        low_(_mm256_set1_epi32((1 << steps.fraction) - 1)),
        none_(_mm256_set1_epi8(static_cast<char>(steps.none))),
        high_(_mm_cvtsi32_si128(static_cast<int>(32 - steps.fraction))),
        fraction_(_mm_cvtsi32_si128(static_cast<int>(steps.fraction))) {}

  __m256i next(const float* v) {
    const __m256i a = next16(v), b = next16(v + 16);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i codes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(a, b), order);
    return _mm256_max_epi8(codes, none_);  // NaN is saturated to -128 by now
  }

 private:
  __m256i next16(const float* v) {
    const __m256i word = random_.next8();
    const __m256i a = _mm256_add_epi32(fixed(v), _mm256_and_si256(word, low_));
    const __m256i b = _mm256_add_epi32(fixed(v + 8), _mm256_srl_epi32(word, high_));
    return _mm256_packs_epi32(_mm256_sra_epi32(a, fraction_), _mm256_sra_epi32(b, fraction_));
  }

  // Less itself, what is no number becomes NaN. That is the second operand of both min and
  // max, so it stays; and it converts to -2^31.
  __m256i fixed(const float* from) const {
    const __m256 v = _mm256_loadu_ps(from);
    __m256 x = _mm256_add_ps(_mm256_mul_ps(v, times_), _mm256_sub_ps(v, v));
    x = _mm256_max_ps(least_, _mm256_min_ps(most_, x));
    return _mm256_cvtps_epi32(x);
  }

  Random random_;
  __m256 times_, most_, least_;
  __m256i low_, none_;
  __m128i high_, fraction_;
};

template <bool past_cache>
inline void store(float* to, __m256 x) {
  if (past_cache) {
    _mm_stream_ps(to, _mm256_castps256_ps128(x));
    _mm_stream_ps(to + 4, _mm256_extractf128_ps(x, 1));
  } else {
    _mm256_storeu_ps(to, x);
  }
}

template <bool past_cache>
struct Loops {
  static void codes(const float* v, std::size_t n, const Steps& steps, Random random,
                    std::int8_t* codes) {
    if (steps.factor != 1 || steps.infinite) {
      codes_of(v, n, steps, random, codes);
      return;
    }
    Coder coder(steps, random);
    std::size_t i = 0;
    for (; i + 32 <= n; i += 32)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes + i), coder.next(v + i));
    if (i == n) return;
    float rest[32] = {};
    alignas(32) std::int8_t last[32];
    std::memcpy(rest, v + i, 4 * (n - i));
    _mm256_store_si256(reinterpret_cast<__m256i*>(last), coder.next(rest));
    std::memcpy(codes + i, last, n - i);
  }

  static bool has_direct(unsigned bits) { return bits == 2 || bits == 4; }

  // Straight from the packed codes, by a table of all values.
  static void direct(const std::uint8_t* packed, std::size_t n, unsigned bits,
                     const Values& bucket, float* v) {
    float all[16];
    for (int code = 0; code < 16; ++code) {
      const int sign = 1 << (bits - 1);
      all[code] = bucket.of(((code & (2 * sign - 1)) ^ sign) - sign);
    }
    const __m256 low = _mm256_loadu_ps(all), high = _mm256_loadu_ps(all + 8);
    std::size_t i = 0;
    if (bits == 4)
      for (; i + 8 <= n; i += 8) store<past_cache>(v + i, eight4(packed + i / 2, low, high));
    else
      for (; i + 8 <= n; i += 8) store<past_cache>(v + i, eight2(packed + i / 4, low));
    for (; i < n; ++i) {
      const std::size_t bit = i * bits;
      v[i] = all[packed[bit / 8] >> bit % 8 & ((1u << bits) - 1)];
    }
  }

  static void values(const std::int8_t* codes, std::size_t n, const Values& bucket, float* v) {
    std::size_t i = 0;
    if (bucket.plain) {
      const __m256 step = _mm256_set1_ps(bucket.step);
      const __m256 nan = _mm256_set1_ps(std::numeric_limits<float>::quiet_NaN());
      const __m256i none = _mm256_set1_epi32(bucket.none);
      for (; i + 8 <= n; i += 8) {
        const __m256i code =
            _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes + i)));
        const __m256 x = _mm256_mul_ps(_mm256_cvtepi32_ps(code), step);
        const __m256 missing = _mm256_castsi256_ps(_mm256_cmpeq_epi32(code, none));
        store<past_cache>(v + i, _mm256_blendv_ps(x, nan, missing));
      }
    }
    for (; i < n; ++i) v[i] = bucket.of(codes[i]);
  }

 private:
  // Lane i has code i at the bottom, and its highest bit at the top; the lower three choose in
  // both halves of the table.
  static __m256 eight4(const std::uint8_t* packed, __m256 low, __m256 high) {
    std::int32_t word;
    std::memcpy(&word, packed, 4);
    const __m256i all = _mm256_set1_epi32(word);
    const __m256i at = _mm256_srlv_epi32(all, _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
    const __m256i top = _mm256_sllv_epi32(all, _mm256_setr_epi32(28, 24, 20, 16, 12, 8, 4, 0));
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, at),
                            _mm256_permutevar8x32_ps(high, at), _mm256_castsi256_ps(top));
  }

  // Four values, twice in the table: a third bit does not matter.
  static __m256 eight2(const std::uint8_t* packed, __m256 table) {
    std::uint16_t word;
    std::memcpy(&word, packed, 2);
    const __m256i at = _mm256_srlv_epi32(_mm256_set1_epi32(word),
                                         _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14));
    return _mm256_permutevar8x32_ps(table, at);
  }
};

constexpr std::size_t kManyBytes = 1 << 20;

}  // namespace

void to_grid(const float* values, std::size_t n, Grid grid, std::uint64_t seed,
             std::uint8_t* code) {
  any_to_grid<Loops<false>>(values, n, grid, seed, code);
}

// A large result is not read soon: written past the caches, it costs half the traffic. Pieces
// begin at multiples of 8 values then, so that an aligned array has aligned pieces.
void from_grid(const std::uint8_t* code, std::size_t n, Grid grid, float* values) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(values) % 16 == 0;
  if (aligned && n * sizeof(float) >= kManyBytes && grid.bucket % 8 == 0) {
    any_from_grid<Loops<true>>(code, n, grid, values);
    _mm_sfence();
  } else {
    any_from_grid<Loops<false>>(code, n, grid, values);
  }
}

}  // namespace sparcml::avx2
