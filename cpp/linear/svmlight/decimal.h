// Rounds decimal numbers to the nearest double. std::from_chars does too, but not every
// standard library has it for floating-point numbers, and strtod depends on the locale.
#pragma once

#include <cstdint>

namespace sparcml {

// Rounds mantissa * 10^exponent, where the mantissa is not 0. Returns whether 64-bit powers of
// ten were precise enough to decide, which they are for all but about one number in 300.
// `truncated` says that digits after the mantissa were left out.
bool round_decimal(std::uint64_t mantissa, std::int64_t exponent, bool truncated,
                   double& value);

// Rounds any number: digits with at most one point, then perhaps an exponent. No sign. A number
// that is too large becomes infinite.
double exact_decimal(const char* p, const char* end);

}  // namespace sparcml
