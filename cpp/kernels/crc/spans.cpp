#include "kernels/crc/spans.h"

#include <array>

#include "kernels/crc/tables.h"

namespace sparcml {

namespace {
constexpr auto table = crc_tables(0xEDB88320);
}

void crc32_spans(const std::uint8_t* data, const std::int64_t* starts,
                 const std::int64_t* stops, std::size_t count, std::uint32_t modulus,
                 std::uint32_t* out) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto n = static_cast<std::size_t>(stops[i] - starts[i]);
    out[i] = ~crc_by_tables(table, data + starts[i], n, ~0u) % modulus;
  }
}

}  // namespace sparcml
