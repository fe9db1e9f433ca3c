#include "kernels/grid/grid.h"

#include "bindings/buckets.h"

static sparcml::Grid as_grid(const sparcml::Buckets& buckets, unsigned levels) {
  require(levels >= 1 && levels < 1u << (buckets.bits - 1),
          "levels must be 1 to 2^(bits - 1) - 1");
  return {buckets, levels};
}

void register_grid(nb::module_& m) {
  m.def(
      "to_grid",
      [](In<float> values, std::size_t bucket, unsigned levels, unsigned bits, int norm,
         float scale, std::uint64_t seed, Out<std::uint8_t> code) {
        const auto grid =
            as_grid(as_buckets(values.size(), code.size(), bucket, bits, norm, scale), levels);
        nb::gil_scoped_release nogil;
        sparcml::to_grid(values.data(), values.size(), grid, seed, code.data());
      },
      "values"_a.noconvert(), "bucket"_a, "levels"_a, "bits"_a, "norm"_a, "scale"_a, "seed"_a,
      "code"_a.noconvert(), "Values at random on an even grid, each bucket by its norm");
  m.def(
      "from_grid",
      [](Bytes code, std::size_t bucket, unsigned levels, unsigned bits, Out<float> values) {
        const auto grid =
            as_grid(as_buckets(values.size(), code.size(), bucket, bits, 2, 0), levels);
        nb::gil_scoped_release nogil;
        sparcml::from_grid(code.data(), values.size(), grid, values.data());
      },
      "code"_a.noconvert(), "bucket"_a, "levels"_a, "bits"_a, "values"_a.noconvert(),
      "Write the values of a code.");
}
