#include "kernels/byte/byte.h"

namespace sparcml {

void to_bytes(const float* values, std::size_t n, std::size_t bucket, float* scales,
              std::int8_t* codes) {
  SPARCML_PICK(to_bytes)(values, n, bucket, scales, codes);
}

void from_bytes(const float* scales, const std::int8_t* codes, std::size_t n,
                std::size_t bucket, float* values) {
  SPARCML_PICK(from_bytes)(scales, codes, n, bucket, values);
}

}  // namespace sparcml
