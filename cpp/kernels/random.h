// Random numbers by position: the number of a value depends only on the seed and its position,
// so that all instruction sets and the NumPy reference draw the same.
//
// Each value has a word of 32 bits and uses the highest bits it needs.
//
//   key      = scramble(scramble(seed) + (word >> 32)), with low half k0 and high half k1
//   word(w)  = a hash of the low 32 bits of w, with k0 added before and k1 within
//
// Three multiplications are needed: after two, words at a distance of 2 are correlated, which a
// sample of 10^8 shows.
//
// op.h explains the anonymous namespace.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sparcml {
namespace {

constexpr std::size_t kLanes = 8;  // words generated at once

// The finalizer of splitmix64 (Steele, Lea and Flood 2014).
inline std::uint64_t scramble(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  return x ^ x >> 31;
}

// The words of a seed in order, starting at a position.
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t word) : seed_(scramble(seed)), word_(word) {
    update_key();
  }

  std::uint32_t next() {
    std::uint32_t x = static_cast<std::uint32_t>(word_) + k0_;
    x = (x ^ x >> 17) * 0xED5AD4BB;  // the constants of triple32 (Wellons 2018)
    x = ((x ^ x >> 11) + k1_) * 0xAC4C1B51;
    x = (x ^ x >> 15) * 0x31848BAB;
    advance(1);
    return x ^ x >> 14;
  }

#ifdef SPARCML_AVX2
  // Returns the next 8 words; the position must be a multiple of 8.
  __m256i next8() {
    const auto first = static_cast<int>(static_cast<std::uint32_t>(word_) + k0_);
    __m256i x =
        _mm256_add_epi32(_mm256_set1_epi32(first), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    x = _mm256_xor_si256(x, _mm256_srli_epi32(x, 17));
    x = _mm256_mullo_epi32(x, _mm256_set1_epi32(static_cast<int>(0xED5AD4BB)));
    x = _mm256_xor_si256(x, _mm256_srli_epi32(x, 11));
    x = _mm256_add_epi32(x, _mm256_set1_epi32(static_cast<int>(k1_)));
    x = _mm256_mullo_epi32(x, _mm256_set1_epi32(static_cast<int>(0xAC4C1B51)));
    x = _mm256_xor_si256(x, _mm256_srli_epi32(x, 15));
    x = _mm256_mullo_epi32(x, _mm256_set1_epi32(0x31848BAB));
    advance(kLanes);
    return _mm256_xor_si256(x, _mm256_srli_epi32(x, 14));
  }
#endif

 private:
  void advance(std::uint64_t words) {
    word_ += words;
    if (static_cast<std::uint32_t>(word_) == 0) update_key();
  }

  void update_key() {
    const std::uint64_t key = scramble(seed_ + (word_ >> 32));
    k0_ = static_cast<std::uint32_t>(key);
    k1_ = static_cast<std::uint32_t>(key >> 32);
  }

  std::uint64_t seed_, word_;
  std::uint32_t k0_, k1_;
};

}  // namespace
}  // namespace sparcml
