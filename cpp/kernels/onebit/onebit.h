// One bit per value: it selects one of the two levels of the value's bucket.
//
// Bit i of `bits` (lowest first, without gaps between buckets) belongs to value i; bits beyond
// the last value are zero. Sums are in double precision: value i of a bucket is added to lane i
// mod 8, and the lanes by a fixed tree, so that every instruction set gives the same bits.
//
//   zero     bit = v >= 0; levels: the mean of the values without the bit, and with it
//   mean     m = mean of the bucket, bit = v >= m; levels: m - d and m + d, d = mean |v - m|
//   signs    bit = v >= 0; one scale: mean |v|
//
// A level without values is 0. A value that is not finite makes its level infinite or NaN, so
// that it never decodes to a finite number.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa.h"

namespace sparcml {

// `levels` has 2 entries per bucket, `scales` one; `bits` has (n + 7) / 8 bytes.
SPARCML_KERNEL(void, one_bit_zero, const float* v, std::size_t n, std::size_t bucket,
               float* levels, std::uint8_t* bits);
SPARCML_KERNEL(void, one_bit_mean, const float* v, std::size_t n, std::size_t bucket,
               float* levels, std::uint8_t* bits);
SPARCML_KERNEL(void, to_sign, const float* v, std::size_t n, std::size_t bucket, float* scales,
               std::uint8_t* bits);
SPARCML_KERNEL(void, from_bitplane, const float* levels, const std::uint8_t* bits,
               std::size_t n, std::size_t bucket, float* v);

}  // namespace sparcml
