// Access to words in memory, and a bit writer. Sections and supported processors are
// little-endian.
//
// op.h explains the anonymous namespace.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

static_assert(std::endian::native == std::endian::little, "sections are little-endian");

namespace sparcml {
namespace {

inline std::uint64_t load64(const std::uint8_t* from) {
  std::uint64_t word;
  std::memcpy(&word, from, 8);
  return word;
}

inline void store64(std::uint8_t* to, std::uint64_t word) { std::memcpy(to, &word, 8); }

// Appends codes, least significant bit first, in words of 8 bytes, and pads with zeros.
class BitWriter {
 public:
  explicit BitWriter(std::uint8_t* out) : out_(out) {}

  // `code` has no bit beyond `length`, which is 1 to 64.
  void append(std::uint64_t code, unsigned length) {
    word_ |= code << used_;
    used_ += length;
    if (used_ < 64) return;
    store64(out_, word_);
    out_ += 8;
    used_ -= 64;
    word_ = used_ ? code >> (length - used_) : 0;
  }

  // The same for long codes. Whether the word is full is then hard to predict, so it is stored
  // every time, without a branch.
  void append_long(std::uint64_t code, unsigned length) {
    word_ |= code << used_;
    store64(out_, word_);
    const std::uint64_t rest = code >> 1 >> (63 - used_);
    used_ += length;
    const std::uint64_t full = used_ / 64;
    word_ = (word_ & (full - 1)) | (rest & -full);
    out_ += 8 * full;
    used_ %= 64;
  }

  void append_unary(std::uint64_t zeros) {
    for (; zeros >= 64; zeros -= 64) append(0, 64);
    append(std::uint64_t{1} << zeros, static_cast<unsigned>(zeros) + 1);
  }

  // Stores the last word, if it is partly filled.
  void finish() const {
    if (used_) store64(out_, word_);
  }

 private:
  std::uint8_t* out_;
  std::uint64_t word_ = 0;
  unsigned used_ = 0;
};

}  // namespace
}  // namespace sparcml
