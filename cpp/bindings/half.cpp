#include "kernels/half/half.h"

#include "bindings/arrays.h"

void register_half(nb::module_& m) {
  m.def(
      "to_half",
      [](In<float> values, Out<std::uint16_t> out, bool bfloat) {
        require(values.size() == out.size(), "to_half: values and out must have the same size");
        const auto convert = bfloat ? sparcml::to_bfloat : sparcml::to_half;
        nb::gil_scoped_release nogil;
        convert(values.data(), values.size(), out.data());
      },
      "values"_a.noconvert(), "out"_a.noconvert(), "bfloat"_a,
      "Convert float32 to the bits of float16 or bfloat16.");
  m.def(
      "from_half",
      [](In<std::uint16_t> bits, Out<float> out, bool bfloat) {
        require(bits.size() == out.size(), "from_half: bits and out must have the same size");
        const auto convert = bfloat ? sparcml::from_bfloat : sparcml::from_half;
        nb::gil_scoped_release nogil;
        convert(bits.data(), bits.size(), out.data());
      },
      "bits"_a.noconvert(), "out"_a.noconvert(), "bfloat"_a,
      "Convert the bits of float16 or bfloat16 to float32.");
}
