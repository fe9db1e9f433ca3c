#include "kernels/table/generic.h"

namespace sparcml::scalar {

void to_table(const float* values, std::size_t n, Table table, std::uint64_t seed,
              std::uint8_t* code) {
  encode_buckets<ScalarLoops, Steps>(values, n, Rows(table), seed, code);
}

void from_table(const std::uint8_t* code, std::size_t n, Table table, float* values) {
  decode_buckets<ScalarLoops, Values>(code, n, Rows(table), values);
}

}  // namespace sparcml::scalar
