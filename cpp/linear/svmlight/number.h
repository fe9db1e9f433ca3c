// Decimal numbers in text. Eight bytes after the number must be readable.
//
// op.h explains the anonymous namespace.
#pragma once

#include <cstdint>

#include "kernels/bits.h"
#include "linear/svmlight/decimal.h"

namespace sparcml {
namespace {

constexpr std::uint64_t whole_powers[] = {1,      10,      100,      1000,     10000,
                                          100000, 1000000, 10000000, 100000000};
constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                             1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                             1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};  // all exact
constexpr int max_digits = 19;  // digits that always fit in 64 bits

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
    value = value * whole_powers[count] + next;
    digits += static_cast<int>(count);
    p += count;
    if (count < 8) return p;
  }
}

// Reads the number at p, rounded to nearest, and returns its end, or nullptr if there is none.
// A number that is too large becomes infinite. Names such as inf and nan are not accepted.
inline const char* number_at(const char* p, double& value) {
  const bool minus = *p == '-';
  p += minus || *p == '+';
  const char* const start = p;
  std::uint64_t mantissa = 0;
  int digits = 0, exponent = 0;
  p = digits_at(p, mantissa, digits);
  if (*p == '.') {
    const int before = digits;
    p = digits_at(p + 1, mantissa, digits);
    exponent = before - digits;
  }
  if (digits == 0) return nullptr;
  bool plain = digits <= max_digits;
  if (*p == 'e' || *p == 'E') {
    const bool down = p[1] == '-';
    const char* const at = p + (down || p[1] == '+' ? 2 : 1);
    std::uint64_t power = 0;
    int length = 0;
    p = digits_at(at, power, length);
    if (length == 0) return nullptr;
    plain = plain && length < 5;
    if (plain) exponent += down ? -static_cast<int>(power) : static_cast<int>(power);
  }
  // Both factors are exact, so that one operation rounds once (Clinger, 1990).
  if (plain && mantissa <= 1ull << 53 && exponent >= -22 && exponent <= 22) {
    const double whole = static_cast<double>(mantissa);
    value = exponent < 0 ? whole / powers[-exponent] : whole * powers[exponent];
  } else if (!plain || !mantissa || !round_decimal(mantissa, exponent, false, value)) {
    value = exact_decimal(start, p);
  }
  if (minus) value = -value;
  return p;
}

}  // namespace
}  // namespace sparcml
