#include "kernels/onebit/onebit.h"

namespace sparcml {

void one_bit_zero(const float* v, std::size_t n, std::size_t bucket, float* levels,
                  std::uint8_t* bits) {
  SPARCML_PICK(one_bit_zero)(v, n, bucket, levels, bits);
}

void one_bit_mean(const float* v, std::size_t n, std::size_t bucket, float* levels,
                  std::uint8_t* bits) {
  SPARCML_PICK(one_bit_mean)(v, n, bucket, levels, bits);
}

void to_sign(const float* v, std::size_t n, std::size_t bucket, float* scales,
             std::uint8_t* bits) {
  SPARCML_PICK(to_sign)(v, n, bucket, scales, bits);
}

void from_bitplane(const float* levels, const std::uint8_t* bits, std::size_t n,
                   std::size_t bucket, float* v) {
  SPARCML_PICK(from_bitplane)(levels, bits, n, bucket, v);
}

}  // namespace sparcml
