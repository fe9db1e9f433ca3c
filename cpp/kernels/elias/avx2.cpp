#include "kernels/elias/generic.h"

namespace sparcml::avx2 {

EliasPlan elias_plan(const std::int8_t* levels, std::size_t n) { return plan(levels, n); }

void elias_encode(const std::int8_t* levels, std::size_t n, bool sparse, std::uint8_t* out) {
  sparse ? encode_sparse(levels, n, out) : encode_dense(levels, n, out);
}

bool elias_decode(const std::uint8_t* data, std::size_t words, bool sparse,
                  std::size_t nonzeros, std::int8_t* levels, std::size_t n) {
  const Reader reader(data, words);
  return sparse ? decode_sparse(reader, nonzeros, levels, n) : decode_dense(reader, levels, n);
}

}  // namespace sparcml::avx2
