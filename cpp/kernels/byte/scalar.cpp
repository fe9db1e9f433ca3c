#include "kernels/byte/generic.h"

namespace sparcml::scalar {

void to_bytes(const float* values, std::size_t n, std::size_t bucket, float* scales,
              std::int8_t* codes) {
  all_to_bytes(values, n, bucket, scales, codes);
}

void from_bytes(const float* scales, const std::int8_t* codes, std::size_t n,
                std::size_t bucket, float* values) {
  all_from_bytes(scales, codes, n, bucket, values);
}

}  // namespace sparcml::scalar
