#include "kernels/table/table.h"

#include "bindings/buckets.h"

static sparcml::Table as_table(const sparcml::Buckets& buckets, const In<float>& levels) {
  const std::size_t n = levels.size();
  require(n >= 2 && n <= 1u << (buckets.bits - 1), "levels must be 2 to 2^(bits - 1)");
  const float* level = levels.data();
  bool ascending = level[0] == 0 && level[n - 1] == 1;
  for (std::size_t i = 1; i < n; ++i) ascending = ascending && level[i] > level[i - 1];
  require(ascending, "levels must ascend from 0 to 1");
  return {buckets, level, static_cast<unsigned>(n - 1)};
}

void register_table(nb::module_& m) {
  m.def(
      "to_table",
      [](In<float> values, std::size_t bucket, In<float> levels, unsigned bits, int norm,
         float scale, std::uint64_t seed, Out<std::uint8_t> code) {
        const auto table =
            as_table(as_buckets(values.size(), code.size(), bucket, bits, norm, scale), levels);
        nb::gil_scoped_release nogil;
        sparcml::to_table(values.data(), values.size(), table, seed, code.data());
      },
      "values"_a.noconvert(), "bucket"_a, "levels"_a.noconvert(), "bits"_a, "norm"_a, "scale"_a,
      "seed"_a, "code"_a.noconvert(),
      "Round values stochastically to a table of levels, relative to the norm of their "
      "bucket.");
  m.def(
      "from_table",
      [](Bytes code, std::size_t bucket, In<float> levels, unsigned bits, Out<float> values) {
        const auto table =
            as_table(as_buckets(values.size(), code.size(), bucket, bits, 2, 0), levels);
        nb::gil_scoped_release nogil;
        sparcml::from_table(code.data(), values.size(), table, values.data());
      },
      "code"_a.noconvert(), "bucket"_a, "levels"_a.noconvert(), "bits"_a,
      "values"_a.noconvert(), "Write the values of a code.");
}
