// Entries out of a word of 64 values, of which a mask says which are wanted.
//
// The anonymous namespace is on purpose: see op.h.
#pragma once

#include "kernels/bits.h"

namespace sparcml {
namespace {

constexpr std::size_t kWord = 64;

// Writes what a full word found, `step` entries at a time without asking whether there are any:
// a loop that ends after each entry would be mispredicted at every other word.
template <std::size_t step, class T>
inline void spill(const T* values, std::uint32_t start, std::uint64_t found, std::size_t more,
                  std::uint32_t* oi, T* ov) {
  for (std::size_t o = 0; o == 0 || o < more; o += step) {
    for (std::size_t k = 0; k < step; ++k) {
      const int at = __builtin_ctzll(found | 1ull << 63);
      oi[o + k] = start + at;
      ov[o + k] = values[at];
      found &= found - 1;
    }
  }
}

template <class T>
inline void spill_exactly(const T* values, std::uint32_t start, std::uint64_t found,
                          std::uint32_t* oi, T* ov) {
  for (; found; found &= found - 1) {
    const int at = __builtin_ctzll(found);
    *oi++ = start + at;
    *ov++ = values[at];
  }
}

template <class T>
inline void copy_word(const T* values, std::uint32_t start, std::uint32_t* oi, T* ov) {
  for (std::size_t k = 0; k < kWord; ++k) oi[k] = start + static_cast<std::uint32_t>(k);
  std::memcpy(ov, values, kWord * sizeof(T));
}

// Writes what a full word found, and maybe anything to the 8 entries after it.
template <class T>
inline void spill_word(const T* values, std::uint32_t start, std::uint64_t found,
                       std::size_t more, std::uint32_t* oi, T* ov) {
  if (more <= 2)
    spill<2>(values, start, found, 2, oi, ov);
  else if (more == kWord)
    copy_word(values, start, oi, ov);
  else
    spill<8>(values, start, found, more, oi, ov);
}

}  // namespace
}  // namespace sparcml
