#include "kernels/elias/generic.h"

namespace sparcml::scalar {

EliasPlan elias_plan(const std::int8_t* levels, std::size_t n) { return plan(levels, n); }

bool elias_encode(const std::int8_t* levels, std::size_t n, bool sparse, std::uint8_t* out,
                  std::size_t words) {
  const Writer writer(out, words);
  return sparse ? encode_sparse(levels, n, writer) : encode_dense(levels, n, writer);
}

bool elias_decode(const std::uint8_t* data, std::size_t words, bool sparse,
                  std::size_t nonzeros, std::int8_t* levels, std::size_t n) {
  const Reader reader(data, words);
  return sparse ? decode_sparse(reader, nonzeros, levels, n) : decode_dense(reader, levels, n);
}

}  // namespace sparcml::scalar
