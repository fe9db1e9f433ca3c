// Decimal numbers in text. Eight bytes after the number must be readable.
//
// op.h explains the anonymous namespace.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <system_error>

#include "kernels/bits.h"

namespace sparcml {
namespace {

constexpr std::uint64_t powers[] = {1,
                                    10,
                                    100,
                                    1000,
                                    10000,
                                    100000,
                                    1000000,
                                    10000000,
                                    100000000,
                                    1000000000,
                                    10000000000,
                                    100000000000,
                                    1000000000000,
                                    10000000000000,
                                    100000000000000,
                                    1000000000000000,
                                    10000000000000000};
constexpr unsigned exact_digits = 15;  // of a number that a double holds
constexpr int max_digits = 19;         // digits that always fit in 64 bits

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Counts the digits among the next eight characters and returns their value, with one load and
// no branch on the length, which is hard to predict.
inline unsigned eight_digits(const char* p, std::uint64_t& value) {
  std::uint64_t word = load64(reinterpret_cast<const std::uint8_t*>(p)) ^ 0x3030303030303030;
  // Marks the lowest byte above 9; a carry into those above it is harmless.
  const std::uint64_t others = ((word + 0x7676767676767676) | word) & 0x8080808080808080;
  const unsigned count = others ? static_cast<unsigned>(__builtin_ctzll(others)) / 8 : 8;
  if (count == 0) return 0;
  word <<= 64 - 8 * count;  // leading zeros
  word = word * 10 + (word >> 8);
  constexpr std::uint64_t pairs = 0x000000FF000000FF;
  word = (word & pairs) * (100 + (1000000ull << 32)) +
         (word >> 16 & pairs) * (1 + (10000ull << 32));
  value = word >> 32;
  return count;
}

// Reads the digits at p and returns their end. `digits` grows by their number; beyond 19 in
// total, the value is invalid.
inline const char* digits_at(const char* p, std::uint64_t& value, int& digits) {
  for (;;) {
    std::uint64_t next = 0;
    const unsigned count = eight_digits(p, next);
    value = value * powers[count] + next;
    digits += static_cast<int>(count);
    p += count;
    if (count < 8) return p;
  }
}

// Whether a number that no double can hold is too large, and not too small: whether its first
// digit other than 0 stands for a positive power of ten.
inline bool is_too_large(const char* p, const char* end) {
  const char* const e = std::find_if(p, end, [](char c) { return (c | 0x20) == 'e'; });
  const char* const first = std::find_if(p, e, [](char c) { return c > '0'; });
  std::int64_t power = 0;
  if (e < end && std::from_chars(e + 1 + (e[1] == '+'), end, power).ec != std::errc())
    return e[1] != '-';
  return std::find(p, e, '.') - first + power > 0;
}

// Reads the number at p, rounded to nearest, and returns its end, or nullptr if there is none.
// A number that is too large becomes infinite. Names such as inf and nan are not accepted.
inline const char* number_at(const char* p, const char* end, double& value) {
  const bool minus = *p == '-';
  p += minus || *p == '+';
  std::uint64_t whole = 0, fraction = 0;
  const unsigned before = eight_digits(p, whole);
  const char* at = p + before;
  unsigned after = 0;
  if (*at == '.') {
    after = eight_digits(++at, fraction);
    if (after == 8) {
      std::uint64_t rest = 0;
      const unsigned more = eight_digits(at + 8, rest);
      fraction = fraction * powers[more] + rest;
      after += more;
    }
    at += after;
  }
  if (before + after == 0) return nullptr;
  // Most numbers are short. Both factors are exact, so that one operation rounds once
  // (Clinger, 1990).
  if (before + after <= exact_digits && !is_digit(*at) && (*at | 0x20) != 'e') {
    const std::uint64_t power = powers[after];
    value = static_cast<double>(whole * power + fraction) / static_cast<double>(power);
    if (minus) value = -value;
    return at;
  }
  const auto [stop, error] = std::from_chars(p, end, value);
  if (error == std::errc::result_out_of_range)
    value = is_too_large(p, stop) ? std::numeric_limits<double>::infinity() : 0.0;
  if (minus) value = -value;
  return stop;
}

}  // namespace
}  // namespace sparcml
