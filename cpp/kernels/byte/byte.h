// Values as signed bytes: each bucket of values is scaled by its largest magnitude.
//
//   scale = max |v| / 127 over the bucket;  code = round(v * (127 / max |v|)), ties to even
//
// Decoding is code * scale. Code -128 stands for what has no place on that grid: NaN. An
// infinity makes its bucket's scale infinite: such a bucket decodes to infinities and NaN, so
// that what was not a number never comes back as one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa.h"

namespace sparcml {

// `scales` has ceil(n / bucket) entries.
void to_bytes(const float* values, std::size_t n, std::size_t bucket, float* scales,
              std::int8_t* codes);
void from_bytes(const float* scales, const std::int8_t* codes, std::size_t n,
                std::size_t bucket, float* values);

namespace scalar {
void to_bytes(const float* values, std::size_t n, std::size_t bucket, float* scales,
              std::int8_t* codes);
void from_bytes(const float* scales, const std::int8_t* codes, std::size_t n,
                std::size_t bucket, float* values);
}  // namespace scalar
namespace avx2 {
void to_bytes(const float* values, std::size_t n, std::size_t bucket, float* scales,
              std::int8_t* codes);
void from_bytes(const float* scales, const std::int8_t* codes, std::size_t n,
                std::size_t bucket, float* values);
}  // namespace avx2

}  // namespace sparcml
