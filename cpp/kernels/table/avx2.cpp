#include "kernels/table/generic.h"
#include "kernels/vectors.h"

namespace sparcml::avx2 {
namespace {

struct Row {
  __m256i at;
  __m256 lower, inverse;
};

// Looks up eight rows in a register; larger tables are gathered from memory.
template <bool small>
struct Search {
  static __m256 look(const float* rows, __m256i at) {
    if (small) return _mm256_permutevar8x32_ps(_mm256_loadu_ps(rows), at);
    return _mm256_i32gather_ps(rows, at, 4);
  }

  static Row find(const Rows& rows, __m256 r) {
    __m256i j = _mm256_setzero_si256();
    for (unsigned step = rows.half; step; step /= 2) {
      const __m256i there = _mm256_add_epi32(j, _mm256_set1_epi32(static_cast<int>(step)));
      const __m256 above = _mm256_cmp_ps(r, look(rows.lower, there), _CMP_GE_OQ);
      j = _mm256_blendv_epi8(j, there, _mm256_castps_si256(above));
    }
    return {j, look(rows.lower, j), look(rows.inverse, j)};
  }
};

// If levels are powers of two, the exponent gives the row. r = 1 then has a row of its own,
// which rounds to the same level.
struct Powers {
  static Row find(const Rows& rows, __m256 r) {
    const __m256i lower =
        _mm256_and_si256(_mm256_castps_si256(r), _mm256_set1_epi32(0x7F800000));
    const __m256i before = _mm256_set1_epi32(static_cast<int>(rows.first) - 1);
    const __m256i at = _mm256_sub_epi32(_mm256_srli_epi32(lower, 23), before);
    const __m256i inside = _mm256_cmpgt_epi32(at, _mm256_setzero_si256());
    const __m256i inverse = _mm256_sub_epi32(_mm256_set1_epi32(254 << 23), lower);
    const __m256 first = _mm256_set1_ps(rows.inverse[0]);
    return {_mm256_and_si256(at, inside), _mm256_castsi256_ps(_mm256_and_si256(lower, inside)),
            _mm256_blendv_ps(first, _mm256_castsi256_ps(inverse), _mm256_castsi256_ps(inside))};
  }
};

template <class Finder>
class Coder {
 public:
  Coder(const Steps& steps, Random random)
      : steps_(steps), random_(random), multiplier_(_mm256_set1_ps(steps.multiplier)) {}

  __m256i next(const float* v) {
    const __m256i a = code(v), b = code(v + 8), c = code(v + 16), d = code(v + 24);
    return to_bytes(a, b, c, d);
  }

 private:
  __m256i code(const float* from) {
    const __m256 v = _mm256_loadu_ps(from), sign = _mm256_set1_ps(-0.0f);
    __m256 r = _mm256_mul_ps(_mm256_andnot_ps(sign, v), multiplier_);
    r = _mm256_min_ps(_mm256_set1_ps(1), r);
    const Row row = Finder::find(steps_.rows, r);
    const __m256 share = _mm256_mul_ps(_mm256_sub_ps(r, row.lower), row.inverse);
    const __m256i fixed = _mm256_cvtps_epi32(_mm256_mul_ps(share, _mm256_set1_ps(kUnit)));
    const __m256i random = _mm256_srli_epi32(random_.next8(), 32 - kFraction);
    __m256i up = _mm256_srai_epi32(_mm256_add_epi32(fixed, random), kFraction);
    up = _mm256_min_epi32(up, _mm256_set1_epi32(1));
    const __m256i negative = _mm256_srai_epi32(_mm256_castps_si256(v), 31);
    const __m256i size = _mm256_add_epi32(row.at, up);
    const __m256i level = _mm256_sub_epi32(_mm256_xor_si256(size, negative), negative);
    const __m256 odd = _mm256_cmp_ps(_mm256_sub_ps(v, v), v, _CMP_UNORD_Q);
    return _mm256_blendv_epi8(level, _mm256_set1_epi32(steps_.nan_code),
                              _mm256_castps_si256(odd));
  }

  const Steps& steps_;
  Random random_;
  __m256 multiplier_;
};

// Returns the level of the magnitude of a code, at most 127.
inline __m256 level_of(const Rows& rows, __m256i at) {
  if (!rows.powers) return _mm256_i32gather_ps(rows.value, at, 4);
  const __m256i before = _mm256_set1_epi32(static_cast<int>(rows.first) - 1);
  const __m256i power = _mm256_slli_epi32(_mm256_add_epi32(at, before), 23);
  const __m256i zero = _mm256_cmpeq_epi32(at, _mm256_setzero_si256());
  const __m256i beyond =
      _mm256_cmpgt_epi32(at, _mm256_set1_epi32(static_cast<int>(rows.count)));
  return _mm256_castsi256_ps(_mm256_or_si256(_mm256_andnot_si256(zero, power), beyond));
}

template <bool past_cache>
struct Loops {
  static void codes(const float* v, std::size_t n, const Steps& steps, Random random,
                    std::int8_t* codes) {
    if (steps.factor != 1)
      ScalarLoops::codes(v, n, steps, random, codes);
    else if (steps.rows.powers)
      all_codes(v, n, Coder<Powers>(steps, random), codes);
    else if (steps.rows.count <= 8)
      all_codes(v, n, Coder<Search<true>>(steps, random), codes);
    else
      all_codes(v, n, Coder<Search<false>>(steps, random), codes);
  }

  static bool has_direct(unsigned bits) { return bits == 2 || bits == 4; }

  static void direct(const std::uint8_t* packed, std::size_t n, unsigned bits,
                     const Values& bucket, float* v) {
    look_up<past_cache>(packed, n, bits, bucket, v);
  }

  static void values(const std::int8_t* codes, std::size_t n, const Values& bucket, float* v) {
    std::size_t i = 0;
    if (bucket.unscaled) {
      const __m256 norm = _mm256_set1_ps(bucket.norm), nan = _mm256_set1_ps(kNaN);
      for (; i + 8 <= n; i += 8) {
        const __m256i code =
            _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes + i)));
        const __m256i last = _mm256_set1_epi32(static_cast<int>(kRows) - 1);
        const __m256i at = _mm256_min_epi32(_mm256_abs_epi32(code), last);
        __m256 x = _mm256_mul_ps(level_of(bucket.rows, at), norm);
        const __m256i sign = _mm256_slli_epi32(_mm256_srli_epi32(code, 31), 31);
        x = _mm256_xor_ps(x, _mm256_castsi256_ps(sign));
        const __m256i nan_code = _mm256_cmpeq_epi32(code, _mm256_set1_epi32(bucket.nan_code));
        const __m256 odd =
            _mm256_or_ps(_mm256_cmp_ps(x, x, _CMP_UNORD_Q), _mm256_castsi256_ps(nan_code));
        store<past_cache>(v + i, _mm256_blendv_ps(x, nan, odd));
      }
    }
    for (; i < n; ++i) v[i] = bucket.of(codes[i]);
  }
};

}  // namespace

void to_table(const float* values, std::size_t n, Table table, std::uint64_t seed,
              std::uint8_t* code) {
  encode_buckets<Loops<false>, Steps>(values, n, Rows(table), seed, code);
}

void from_table(const std::uint8_t* code, std::size_t n, Table table, float* values) {
  if (past_caches(values, n) && table.bucket % 8 == 0) {
    decode_buckets<Loops<true>, Values>(code, n, Rows(table), values);
    _mm_sfence();
  } else {
    decode_buckets<Loops<false>, Values>(code, n, Rows(table), values);
  }
}

}  // namespace sparcml::avx2
