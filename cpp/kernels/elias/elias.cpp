#include "kernels/elias/elias.h"

namespace sparcml {

EliasPlan elias_plan(const std::int8_t* levels, std::size_t n) {
  return SPARCML_PICK(elias_plan)(levels, n);
}

bool elias_encode(const std::int8_t* levels, std::size_t n, bool sparse, std::uint8_t* out,
                  std::size_t words) {
  return SPARCML_PICK(elias_encode)(levels, n, sparse, out, words);
}

bool elias_decode(const std::uint8_t* data, std::size_t words, bool sparse,
                  std::size_t nonzeros, std::int8_t* levels, std::size_t n) {
  return SPARCML_PICK(elias_decode)(data, words, sparse, nonzeros, levels, n);
}

}  // namespace sparcml
