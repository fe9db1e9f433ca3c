#include <immintrin.h>

#include "kernels/gap/generic.h"

namespace sparcml {
namespace {

inline __m256i load8(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}

inline __m128i load4(const void* from) {
  return _mm_loadu_si128(static_cast<const __m128i*>(from));
}

inline __m128i upper(__m256i x) { return _mm256_extracti128_si256(x, 1); }

inline std::uint64_t first64(__m128i x) {
  return static_cast<std::uint64_t>(_mm_cvtsi128_si64(x));
}

// i > 0
inline __m256i gaps_at(const std::uint32_t* indices, std::size_t i) {
  const __m256i step = _mm256_sub_epi32(load8(indices + i), load8(indices + i - 1));
  return _mm256_add_epi32(step, _mm256_set1_epi32(-1));
}

// lane i = x_0 + ... + x_i
inline __m256i running_sum(__m256i x) {
  x = _mm256_add_epi32(x, _mm256_slli_si256(x, 4));
  x = _mm256_add_epi32(x, _mm256_slli_si256(x, 8));
  const __m256i half = _mm256_permutevar8x32_epi32(x, _mm256_set1_epi32(3));
  return _mm256_add_epi32(x, _mm256_blend_epi32(_mm256_setzero_si256(), half, 0xF0));
}

// Packs 8 low parts of r < 16 bits into r bytes: pairs into 64 bits, pairs of those, then both
// halves. The scalar writer handles the first 8, which have no index before them, and the last
// ones, so that no store of 16 bytes leaves the plane.
void encode_low_wide(const std::uint32_t* indices, std::size_t n, unsigned r,
                     std::uint8_t* plane) {
  std::uint8_t* end = plane + 8 * words(std::uint64_t{n} * r);
  store64(end - 8, 0);  // the padding
  encode_low(BitWriter(plane), indices, 0, r < 16 && n > 8 ? 8 : n, r).finish();
  if (r >= 16 || n <= 8) return;
  const __m256i mask = _mm256_set1_epi32(static_cast<int>(low_mask(r)));
  const __m128i by = _mm_cvtsi32_si128(static_cast<int>(r));
  const __m256i by_pair = _mm256_set_epi64x(2 * r, 0, 2 * r, 0);
  std::size_t i = 8;
  std::uint8_t* at = plane + r;
  for (; i + 8 <= n && end - at >= 16; i += 8, at += r) {
    const __m256i low = _mm256_and_si256(gaps_at(indices, i), mask);
    const __m256i odd = _mm256_sll_epi64(_mm256_srli_epi64(low, 32), by);
    const __m256i even = _mm256_blend_epi32(low, _mm256_setzero_si256(), 0xAA);
    __m256i four = _mm256_sllv_epi64(_mm256_or_si256(even, odd), by_pair);
    four = _mm256_or_si256(four, _mm256_shuffle_epi32(four, 0x4E));
    const std::uint64_t a = first64(_mm256_castsi256_si128(four));
    const std::uint64_t b = first64(upper(four));
    store64(at, a | b << (4 * r));
    store64(at + 8, b >> 1 >> (63 - 4 * r));
  }
  // This may reach 7 bytes into the high plane, which is written later.
  encode_low(BitWriter(at), indices, i, n, r).finish();
}

// Writes one code for 8 gaps, unless their ones are more than 64 bits apart.
void encode_high_wide(const std::uint32_t* indices, std::size_t n, unsigned r,
                      std::uint8_t* plane) {
  BitWriter writer = encode_high(BitWriter(plane), indices, 0, n < 8 ? n : 8, r);
  const __m128i by = _mm_cvtsi32_si128(static_cast<int>(r));
  const __m256i one = _mm256_set1_epi64x(1);
  std::size_t i = 8;
  for (; i + 8 <= n; i += 8) {
    const __m256i high = _mm256_srl_epi32(gaps_at(indices, i), by);
    const __m256i iota = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i at = _mm256_add_epi32(running_sum(high), iota);
    const auto last = static_cast<std::uint32_t>(_mm256_extract_epi32(at, 7));
    if (last >= 64) {
      writer = encode_high(writer, indices, i, i + 8, r);
      continue;
    }
    const __m256i a = _mm256_cvtepu32_epi64(_mm256_castsi256_si128(at));
    const __m256i b = _mm256_cvtepu32_epi64(upper(at));
    const __m256i bits = _mm256_or_si256(_mm256_sllv_epi64(one, a), _mm256_sllv_epi64(one, b));
    const __m128i both = _mm_or_si128(_mm256_castsi256_si128(bits), upper(bits));
    writer.append_long(first64(both) | first64(_mm_unpackhi_epi64(both, both)), last + 1);
  }
  encode_high(writer, indices, i, n, r).finish();
}

// Unpacks 8 low parts of r <= 25 bits from r bytes: entry i begins in byte i * r / 8 and fits,
// with the bits before it, in 4 bytes.
struct Unpack {
  __m256i bytes, shift, mask;
  explicit Unpack(unsigned r) : mask(_mm256_set1_epi32(static_cast<int>(low_mask(r)))) {
    alignas(32) std::uint8_t from[32];
    alignas(32) std::uint32_t by[8];
    for (unsigned i = 0; i < 8; ++i) {
      const unsigned start = i < 4 ? 0 : r / 2;
      by[i] = i * r % 8;
      for (unsigned b = 0; b < 4; ++b)
        from[4 * i + b] = static_cast<std::uint8_t>(i * r / 8 - start + b);
    }
    bytes = load8(from);
    shift = load8(by);
  }
  __m256i operator()(const std::uint8_t* at, unsigned r) const {
    const __m256i raw =
        _mm256_inserti128_si256(_mm256_castsi128_si256(load4(at)), load4(at + r / 2), 1);
    return _mm256_and_si256(_mm256_srlv_epi32(_mm256_shuffle_epi8(raw, bytes), shift), mask);
  }
};

// add_low for eight entries at a time; begin % 8 == 0. The sum of one segment must fit in 32
// bits.
std::uint64_t add_low_wide(const Section& s, std::size_t begin, std::size_t end,
                           std::uint64_t sum, std::uint32_t* out) {
  static_assert(segment + 72 < 1 << 11);
  if (s.r > 21) return add_low(s, begin, end, sum, out);
  const Unpack unpack(s.r);
  const __m128i by = _mm_cvtsi32_si128(static_cast<int>(s.r));
  const __m256i eight = _mm256_set1_epi32(8), seventh = _mm256_set1_epi32(7);
  __m256i entry = _mm256_add_epi32(_mm256_set1_epi32(static_cast<int>(begin)),
                                   _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  __m256i base = _mm256_set1_epi32(static_cast<int>(sum));
  const std::uint8_t* at = s.low + begin / 8 * s.r;
  std::size_t i = begin;
  for (; i + 8 <= end && s.end - at >= 16 + s.r / 2; i += 8, at += s.r) {
    const __m256i low = running_sum(unpack(at, s.r));
    const __m256i high = _mm256_sll_epi32(_mm256_sub_epi32(load8(out + i), entry), by);
    const __m256i rest = _mm256_add_epi32(_mm256_add_epi32(high, low), entry);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm256_add_epi32(rest, base));
    base = _mm256_add_epi32(base, _mm256_permutevar8x32_epi32(low, seventh));
    entry = _mm256_add_epi32(entry, eight);
  }
  const auto grown = static_cast<std::uint32_t>(_mm256_extract_epi32(base, 0));
  sum += grown - static_cast<std::uint32_t>(sum);
  return add_low(s, i, end, sum, out);
}

}  // namespace

namespace avx2 {

std::size_t gap_nbytes(const std::uint32_t* indices, std::size_t n, unsigned r) {
  return section_bytes(indices, n, r);
}

void gap_encode(const std::uint32_t* indices, std::size_t n, unsigned r, std::uint8_t* out) {
  if (n == 0) return;
  store64(out, r);
  if (r > 0) encode_low_wide(indices, n, r, out + 8);
  encode_high_wide(indices, n, r, out + 8 + 8 * words(std::uint64_t{n} * r));
}

const char* gap_decode(const std::uint8_t* data, std::size_t size, std::size_t n,
                       std::uint32_t blocks, std::uint32_t* out) {
  return decode_section(data, size, n, blocks, out, add_low_wide);
}

}  // namespace avx2
}  // namespace sparcml
