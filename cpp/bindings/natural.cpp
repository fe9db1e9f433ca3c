#include "kernels/natural/natural.h"

#include "bindings/arrays.h"

static void require_room(std::size_t n, std::size_t nbytes) {
  require(nbytes == n + n / 8 + (n % 8 != 0), "code must have 9 bits per value");
}

void register_natural(nb::module_& m) {
  m.def(
      "to_natural",
      [](In<float> values, std::uint64_t seed, Out<std::uint8_t> code) {
        require_room(values.size(), code.size());
        nb::gil_scoped_release nogil;
        sparcml::to_natural(values.data(), values.size(), seed, code.data());
      },
      "values"_a.noconvert(), "seed"_a, "code"_a.noconvert(),
      "Round each value stochastically to a neighbouring power of two.");
  m.def(
      "from_natural",
      [](Bytes code, Out<float> values) {
        require_room(values.size(), code.size());
        nb::gil_scoped_release nogil;
        sparcml::from_natural(code.data(), values.size(), values.data());
      },
      "code"_a.noconvert(), "values"_a.noconvert(), "Write the values of a code.");
}
