#include "kernels/onebit/onebit.h"

#include "bindings/arrays.h"

// `each` numbers a bucket, and a bit a value.
static void check(std::size_t n, std::size_t bucket, std::size_t numbers, std::size_t each,
                  std::size_t bytes) {
  require(bucket > 0, "bucket must be at least 1");
  const std::size_t buckets = n / bucket + (n % bucket != 0);
  require(numbers == each * buckets && bytes == n / 8 + (n % 8 != 0),
          "onebit: levels must have two values or scales one per bucket, and bits one bit per "
          "value");
}

void register_onebit(nb::module_& m) {
  m.def(
      "to_onebit",
      [](In<float> values, std::size_t bucket, bool mean, Out<float> levels,
         Out<std::uint8_t> bits) {
        check(values.size(), bucket, levels.size(), 2, bits.size());
        nb::gil_scoped_release nogil;
        auto run = mean ? sparcml::one_bit_mean : sparcml::one_bit_zero;
        run(values.data(), values.size(), bucket, levels.data(), bits.data());
      },
      "values"_a.noconvert(), "bucket"_a, "mean"_a, "levels"_a.noconvert(),
      "bits"_a.noconvert(), "Two levels a bucket, and which of them each value takes");
  m.def(
      "to_sign",
      [](In<float> values, std::size_t bucket, Out<float> scales, Out<std::uint8_t> bits) {
        check(values.size(), bucket, scales.size(), 1, bits.size());
        nb::gil_scoped_release nogil;
        sparcml::to_sign(values.data(), values.size(), bucket, scales.data(), bits.data());
      },
      "values"_a.noconvert(), "bucket"_a, "scales"_a.noconvert(), "bits"_a.noconvert(),
      "Write the mean magnitude per bucket, and one bit per value, set if it is >= 0.");
  m.def(
      "from_bitplane",
      [](In<float> levels, Bytes bits, std::size_t bucket, Out<float> values) {
        check(values.size(), bucket, levels.size(), 2, bits.size());
        nb::gil_scoped_release nogil;
        sparcml::from_bitplane(levels.data(), bits.data(), values.size(), bucket,
                               values.data());
      },
      "levels"_a.noconvert(), "bits"_a.noconvert(), "bucket"_a, "values"_a.noconvert(),
      "Write the level that each bit selects.");
}
