#include "kernels/crc/crc.h"

#include "bindings/arrays.h"

static void crc32_spans(Bytes data, In<std::int64_t> starts, In<std::int64_t> stops,
                        std::uint32_t modulus, Out<std::uint32_t> out) {
  const std::size_t count = starts.size();
  require(stops.size() == count && out.size() == count,
          "crc32_spans: starts, stops and out must have the same length");
  require(modulus > 0, "crc32_spans: modulus must be at least 1");
  bool inside = true;
  {
    nb::gil_scoped_release nogil;
    const auto size = static_cast<std::int64_t>(data.size());
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t start = starts.data()[i], stop = stops.data()[i];
      inside &= 0 <= start && start <= stop && stop <= size;
    }
    if (inside)
      sparcml::crc32_spans(data.data(), starts.data(), stops.data(), count, modulus,
                           out.data());
  }
  require(inside, "crc32_spans: spans must be within the data");
}

void register_crc(nb::module_& m) {
  m.def(
      "crc32c",
      [](Bytes data, std::uint32_t crc) {
        nb::gil_scoped_release nogil;
        return sparcml::crc32c(data.data(), data.size(), crc);
      },
      "data"_a.noconvert(), "crc"_a = 0, "Return the CRC-32C of data, continued from crc.");
  m.def("crc32_spans", crc32_spans, "data"_a.noconvert(), "starts"_a.noconvert(),
        "stops"_a.noconvert(), "modulus"_a, "out"_a.noconvert(),
        "Write zlib's CRC-32 of each data[start:stop], modulo modulus.");
}
