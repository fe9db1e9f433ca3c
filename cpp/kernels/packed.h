// Signed codes of 2 to 8 bits in two's complement, packed without gaps, lowest bit first: 8
// codes of b bits fill b bytes. The last byte is padded with zeros.
//
// op.h explains the anonymous namespace.
#pragma once

#include "kernels/bits.h"

namespace sparcml {
namespace {

inline std::size_t packed_size(std::size_t codes, unsigned bits) {
  return codes / 8 * bits + (codes % 8 * bits + 7) / 8;
}

constexpr std::uint64_t kOnes = 0x0101010101010101;  // a one in each byte

// Packs the lowest bits of eight bytes next to each other; spread8 is the inverse.
inline std::uint64_t squeeze8(std::uint64_t bytes, unsigned bits) {
  const std::uint64_t low = (1u << bits) - 1;
#ifdef SPARCML_AVX2
  return _pext_u64(bytes, kOnes * low);
#else
  std::uint64_t word = 0;
  for (unsigned i = 0; i < 8; ++i) word |= (bytes >> (8 * i) & low) << (bits * i);
  return word;
#endif
}

inline std::uint64_t spread8(std::uint64_t word, unsigned bits) {
  const std::uint64_t low = (1u << bits) - 1;
#ifdef SPARCML_AVX2
  return _pdep_u64(word, kOnes * low);
#else
  std::uint64_t bytes = 0;
  for (unsigned i = 0; i < 8; ++i) bytes |= (word >> (bits * i) & low) << (8 * i);
  return bytes;
#endif
}

// Sign-extends eight bytes that hold integers of `bits` < 8 bits.
inline std::uint64_t sign_extend8(std::uint64_t bytes, unsigned bits) {
  const std::uint64_t sign = 1u << (bits - 1);
  return ((bytes ^ kOnes * sign) + kOnes * (128 - sign)) ^ kOnes * 128;
}

#ifdef SPARCML_AVX2
// Packs as many codes as fill vectors; returns their number.
inline std::size_t pack4(const std::int8_t* codes, std::size_t n, std::uint8_t* out) {
  const __m256i low = _mm256_set1_epi8(15), times = _mm256_set1_epi16(0x1001);
  std::size_t i = 0;
  for (; i + 64 <= n; i += 64) {
    const auto* from = reinterpret_cast<const __m256i*>(codes + i);
    const __m256i a = _mm256_and_si256(_mm256_loadu_si256(from), low);
    const __m256i b = _mm256_and_si256(_mm256_loadu_si256(from + 1), low);
    const __m256i both =
        _mm256_packus_epi16(_mm256_maddubs_epi16(a, times), _mm256_maddubs_epi16(b, times));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i / 2),
                        _mm256_permute4x64_epi64(both, 0xD8));
  }
  return i;
}

inline std::size_t pack2(const std::int8_t* codes, std::size_t n, std::uint8_t* out) {
  const __m256i low = _mm256_set1_epi8(3), pairs = _mm256_set1_epi16(0x0401);
  const __m256i fours = _mm256_set1_epi32(0x00100001);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  std::size_t i = 0;
  for (; i + 128 <= n; i += 128) {
    __m256i four[4];
    for (int k = 0; k < 4; ++k) {
      const auto* from = reinterpret_cast<const __m256i*>(codes + i + 32 * k);
      const __m256i a = _mm256_and_si256(_mm256_loadu_si256(from), low);
      four[k] = _mm256_madd_epi16(_mm256_maddubs_epi16(a, pairs), fours);
    }
    const __m256i all = _mm256_packus_epi16(_mm256_packs_epi32(four[0], four[1]),
                                            _mm256_packs_epi32(four[2], four[3]));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i / 4),
                        _mm256_permutevar8x32_epi32(all, order));
  }
  return i;
}
#endif

// Packs n codes; n must be divisible by 8 except in the last call of a section.
inline void pack(const std::int8_t* codes, std::size_t n, unsigned bits, std::uint8_t* out) {
  std::size_t i = 0;
#ifdef SPARCML_AVX2
  if (bits == 4) i = pack4(codes, n, out);
  if (bits == 2) i = pack2(codes, n, out);
#endif
  const std::uint8_t* end = out + packed_size(n, bits);
  out += i / 8 * bits;
  for (; i + 8 <= n && end - out >= 8; i += 8, out += bits)
    store64(out, squeeze8(load64(reinterpret_cast<const std::uint8_t*>(codes + i)), bits));
  for (; i < n; i += 8, out += bits) {
    const std::size_t left = n - i < 8 ? n - i : 8;
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, codes + i, left);
    const std::uint64_t word = squeeze8(bytes, bits);
    std::memcpy(out, &word, packed_size(left, bits));
  }
}

// The inverse for bits < 8; does not read beyond the code.
inline void unpack(const std::uint8_t* in, std::size_t n, unsigned bits, std::int8_t* codes) {
  const std::uint8_t* end = in + packed_size(n, bits);
  std::size_t i = 0;
  for (; i + 8 <= n && end - in >= 8; i += 8, in += bits)
    store64(reinterpret_cast<std::uint8_t*>(codes + i),
            sign_extend8(spread8(load64(in), bits), bits));
  for (; i < n; i += 8, in += bits) {
    const std::size_t left = n - i < 8 ? n - i : 8;
    std::uint64_t word = 0;
    std::memcpy(&word, in, packed_size(left, bits));
    const std::uint64_t bytes = sign_extend8(spread8(word, bits), bits);
    std::memcpy(codes + i, &bytes, left);
  }
}

// Collects segments of codes and packs them when there are enough.
class Packer {
 public:
  Packer(unsigned bits, std::uint8_t* out) : bits_(bits), out_(out) {}

  // Maximum size of a segment.
  static constexpr std::size_t kMaxSegment = 2048;

  // Returns where to write the next segment. Codes of 8 bits need no packing and go to the
  // output.
  std::int8_t* space() {
    return bits_ == 8 ? reinterpret_cast<std::int8_t*>(out_) : pending_ + used_;
  }

  void add(std::size_t codes) {
    if (bits_ == 8) {
      out_ += codes;
      return;
    }
    used_ += codes;
    if (used_ < kMaxSegment) return;
    const std::size_t full = used_ / 8 * 8;
    pack(pending_, full, bits_, out_);
    out_ += full / 8 * bits_;
    used_ -= full;
    std::memmove(pending_, pending_ + full, used_);
  }

  void finish() const {
    if (bits_ < 8) pack(pending_, used_, bits_, out_);
  }

 private:
  unsigned bits_;
  std::uint8_t* out_;
  std::size_t used_ = 0;
  std::int8_t pending_[2 * kMaxSegment];
};

// Unpacks codes in segments.
class Unpacker {
 public:
  Unpacker(unsigned bits, const std::uint8_t* in, std::size_t codes)
      : bits_(bits), in_(in), left_(codes) {}

  // Returns the next codes, at least one and at kMaxSegment `wanted`.
  const std::int8_t* next(std::size_t wanted, std::size_t* got) {
    if (bits_ == 8) {
      *got = wanted;
      in_ += wanted;
      return reinterpret_cast<const std::int8_t*>(in_) - wanted;
    }
    if (at_ == filled_) fill();
    *got = filled_ - at_ < wanted ? filled_ - at_ : wanted;
    at_ += *got;
    return ready_ + at_ - *got;
  }

 private:
  void fill() {
    at_ = 0;
    filled_ = left_ < sizeof ready_ ? left_ : sizeof ready_;
    unpack(in_, filled_, bits_, ready_);
    in_ += packed_size(filled_, bits_);
    left_ -= filled_;
  }

  unsigned bits_;
  const std::uint8_t* in_;
  std::size_t left_, at_ = 0, filled_ = 0;
  std::int8_t ready_[2048];
};

}  // namespace
}  // namespace sparcml
