#include "kernels/grid/grid.h"

#include "bindings/arrays.h"

static sparcml::Grid grid_of(std::size_t n, std::size_t nbytes, std::size_t bucket,
                             unsigned levels, unsigned bits, int norm, float scale) {
  require(bucket > 0, "bucket must be at least 1");
  require(bits >= 2 && bits <= 8, "bits must be 2 to 8");
  require(levels >= 1 && levels < 1u << (bits - 1), "levels must be 1 to 2^(bits - 1) - 1");
  require(norm >= 0 && norm <= 2, "norm must be 0 (largest), 1 (length) or 2 (given)");
  const std::size_t buckets = n / bucket + (n % bucket != 0);
  require(nbytes == 4 * buckets + n / 8 * bits + (n % 8 * bits + 7) / 8,
          "the code must have 4 bytes a bucket and the bits of all values");
  return {bucket, levels, bits, static_cast<sparcml::Norm>(norm), scale};
}

void register_grid(nb::module_& m) {
  m.def(
      "to_grid",
      [](In<float> values, std::size_t bucket, unsigned levels, unsigned bits, int norm,
         float scale, std::uint64_t seed, Out<std::uint8_t> code) {
        const auto grid =
            grid_of(values.size(), code.size(), bucket, levels, bits, norm, scale);
        nb::gil_scoped_release nogil;
        sparcml::to_grid(values.data(), values.size(), grid, seed, code.data());
      },
      "values"_a.noconvert(), "bucket"_a, "levels"_a, "bits"_a, "norm"_a, "scale"_a, "seed"_a,
      "code"_a.noconvert(), "Values at random on an even grid, each bucket by its norm");
  m.def(
      "from_grid",
      [](Bytes code, std::size_t bucket, unsigned levels, unsigned bits, Out<float> values) {
        const auto grid = grid_of(values.size(), code.size(), bucket, levels, bits, 2, 0);
        nb::gil_scoped_release nogil;
        sparcml::from_grid(code.data(), values.size(), grid, values.data());
      },
      "code"_a.noconvert(), "bucket"_a, "levels"_a, "bits"_a, "values"_a.noconvert(),
      "The values that such a code stands for");
}
