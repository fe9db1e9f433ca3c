#include "kernels/table/table.h"

namespace sparcml {

void to_table(const float* values, std::size_t n, Table table, std::uint64_t seed,
              std::uint8_t* code) {
  SPARCML_PICK(to_table)(values, n, table, seed, code);
}

void from_table(const std::uint8_t* code, std::size_t n, Table table, float* values) {
  SPARCML_PICK(from_table)(code, n, table, values);
}

}  // namespace sparcml
