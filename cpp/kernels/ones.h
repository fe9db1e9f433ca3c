// The positions of the ones of a bitmap, ascending.
//
// op.h explains the anonymous namespace.
#pragma once

#include <array>

#include "kernels/bits.h"

namespace sparcml {
namespace {

inline std::size_t count_ones(const std::uint8_t* bitmap, std::size_t words) {
  std::size_t ones = 0;
  for (std::size_t i = 0; i < words; ++i) ones += __builtin_popcountll(load64(bitmap + 8 * i));
  return ones;
}

// Stores base + position for each one of `word`; returns their number.
inline std::size_t store_ones(std::uint64_t word, std::uint32_t base, std::uint32_t* out) {
  std::size_t count = 0;
  for (; word; word &= word - 1) out[count++] = base + __builtin_ctzll(word);
  return count;
}

#ifdef SPARCML_AVX2
// Row b has the positions of the ones of byte b.
constexpr auto byte_ones = [] {
  std::array<std::array<std::uint8_t, 8>, 256> rows{};
  for (unsigned b = 0; b < 256; ++b)
    for (unsigned bit = 0, count = 0; bit < 8; ++bit)
      if (b >> bit & 1) rows[b][count++] = static_cast<std::uint8_t>(bit);
  return rows;
}();

// The same with few branches; may overwrite out[count..71].
inline std::size_t store_ones_wide(std::uint64_t word, std::uint32_t base, std::uint32_t* out) {
  const auto count = static_cast<std::size_t>(_mm_popcnt_u64(word));
  if (count <= 2) {
    out[0] = base + static_cast<std::uint32_t>(_tzcnt_u64(word));
    out[1] = base + static_cast<std::uint32_t>(_tzcnt_u64(word & (word - 1)));
    return count;
  }
  std::uint32_t* to = out;
  __m256i at = _mm256_set1_epi32(static_cast<int>(base));
  for (int i = 0; i < 8; ++i, word >>= 8) {
    const auto byte = static_cast<std::uint8_t>(word);
    const auto* row = reinterpret_cast<const __m128i*>(byte_ones[byte].data());
    const __m256i ones = _mm256_add_epi32(_mm256_cvtepu8_epi32(_mm_loadl_epi64(row)), at);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), ones);
    to += _mm_popcnt_u32(byte);
    at = _mm256_add_epi32(at, _mm256_set1_epi32(8));
  }
  return count;
}
constexpr std::size_t wide_reach = 72;
#else
inline std::size_t store_ones_wide(std::uint64_t word, std::uint32_t base, std::uint32_t* out) {
  return store_ones(word, base, out);
}
constexpr std::size_t wide_reach = 64;
#endif

// Iterates over a bitmap that is known to hold exactly `n` ones.
class Ones {
 public:
  Ones(const std::uint8_t* bitmap, std::uint32_t* out, std::size_t n)
      : bitmap_(bitmap), out_(out), n_(n) {}

  // Stores positions until there are at least `goal` (at most n); returns their number.
  std::size_t store_until(std::size_t goal) {
    for (; count_ < goal; bitmap_ += 8, base_ += 64) {
      const std::uint64_t word = load64(bitmap_);
      count_ += count_ + wide_reach <= n_ ? store_ones_wide(word, base_, out_ + count_)
                                          : store_ones(word, base_, out_ + count_);
    }
    return count_;
  }

 private:
  const std::uint8_t* bitmap_;
  std::uint32_t* out_;
  std::size_t n_;
  std::size_t count_ = 0;
  std::uint32_t base_ = 0;
};

}  // namespace
}  // namespace sparcml
