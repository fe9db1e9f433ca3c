// Stochastic rounding to a table of levels, such as the powers of two of NUQSGD.
//
// Levels 0 = l_0 < l_1 < ... < l_m = 1 are relative to the norm of the bucket. With r = |v| /
// norm between l_j and l_(j+1), the magnitude of the code is j + 1 with probability (r - l_j) /
// (l_(j+1) - l_j), rounded to 24 bits, else j, which is unbiased. buckets.h describes the
// layout of the code. It decodes to norm * l_code, with the sign.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/buckets.h"
#include "kernels/isa.h"

namespace sparcml {

struct Table : Buckets {
  const float* levels;
  unsigned count;  // m, at least 1 and at most 2^(bits - 1) - 1
};

// `code` has 4 bytes per bucket and n * bits bits, padded to a byte.
SPARCML_KERNEL(void, to_table, const float* values, std::size_t n, Table table,
               std::uint64_t seed, std::uint8_t* code);
SPARCML_KERNEL(void, from_table, const std::uint8_t* code, std::size_t n, Table table,
               float* values);

}  // namespace sparcml
