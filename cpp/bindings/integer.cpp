#include "kernels/integer/integer.h"

#include "bindings/arrays.h"

static sparcml::Grid grid(float step, std::uint32_t most, std::size_t n, std::size_t bytes) {
  require(step > 0 && step - step == 0, "whole: step must be positive and finite");
  require(most >= 1 && most < 1 << 15, "whole: most must be from 1 to 32767");
  unsigned width = 2;
  while ((1u << width) < 2 * most + 1) ++width;
  require(n < SIZE_MAX / 16 && bytes == (n * width + 7) / 8,
          "whole: as many bytes as the bits of all values");
  return {step, most, width};
}

void register_integer(nb::module_& m) {
  m.def(
      "to_integer",
      [](In<float> values, float step, std::uint32_t most, Out<std::uint8_t> packed) {
        const auto g = grid(step, most, values.size(), packed.size());
        nb::gil_scoped_release nogil;
        return sparcml::to_integer(values.data(), values.size(), g, packed.data());
      },
      "values"_a.noconvert(), "step"_a, "most"_a, "packed"_a.noconvert(),
      "Packs multiples of a step; how many values are known to be such");
  m.def(
      "from_integer",
      [](Bytes packed, float step, std::uint32_t most, Out<float> values) {
        const auto g = grid(step, most, values.size(), packed.size());
        nb::gil_scoped_release nogil;
        return sparcml::from_integer(packed.data(), values.size(), g, values.data());
      },
      "packed"_a.noconvert(), "step"_a, "most"_a, "values"_a.noconvert(),
      "The multiples; how many values are known to be such");
}
