#include "kernels/crc/crc.h"

#include "bindings/arrays.h"

void register_crc(nb::module_& m) {
  m.def(
      "crc32c",
      [](Bytes data, std::uint32_t crc) {
        nb::gil_scoped_release nogil;
        return sparcml::crc32c(data.data(), data.size(), crc);
      },
      "data"_a.noconvert(), "crc"_a = 0, "CRC-32C of data, going on from crc");
}
