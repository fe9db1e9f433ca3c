#include "kernels/integer/integer.h"

#include "bindings/arrays.h"

static sparcml::Multiples as_multiples(float step, std::uint32_t max_multiple, std::size_t n,
                                       std::size_t bytes) {
  require(step > 0 && step - step == 0, "integer: step must be positive and finite");
  require(max_multiple >= 1 && max_multiple < 1 << 15,
          "integer: max_multiple must be 1 to 32767");
  unsigned width = 2;
  while ((1u << width) < 2 * max_multiple + 1) ++width;
  require(n < SIZE_MAX / 16 && bytes == (n * width + 7) / 8,
          "integer: packed must have the bits of all values");
  return {step, max_multiple, width};
}

void register_integer(nb::module_& m) {
  m.def(
      "to_integer",
      [](In<float> values, float step, std::uint32_t max_multiple, Out<std::uint8_t> packed) {
        const auto g = as_multiples(step, max_multiple, values.size(), packed.size());
        nb::gil_scoped_release nogil;
        return sparcml::to_integer(values.data(), values.size(), g, packed.data());
      },
      "values"_a.noconvert(), "step"_a, "max_multiple"_a, "packed"_a.noconvert(),
      "Pack multiples of a step. Return the number of values known to be valid.");
  m.def(
      "from_integer",
      [](Bytes packed, float step, std::uint32_t max_multiple, Out<float> values) {
        const auto g = as_multiples(step, max_multiple, values.size(), packed.size());
        nb::gil_scoped_release nogil;
        return sparcml::from_integer(packed.data(), values.size(), g, values.data());
      },
      "packed"_a.noconvert(), "step"_a, "max_multiple"_a, "values"_a.noconvert(),
      "Write the multiples. Return the number of values known to be valid.");
}
