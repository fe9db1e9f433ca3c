#include "kernels/byte/byte.h"

#include "bindings/arrays.h"

static std::size_t buckets(std::size_t n, std::size_t bucket) {
  require(bucket > 0, "bucket must be at least 1");
  return n / bucket + (n % bucket != 0);
}

void register_byte(nb::module_& m) {
  m.def(
      "to_bytes",
      [](In<float> values, std::size_t bucket, Out<float> scales, Out<std::int8_t> codes) {
        require(
            scales.size() == buckets(values.size(), bucket) && codes.size() == values.size(),
            "to_bytes: one scale a bucket and one code a value");
        nb::gil_scoped_release nogil;
        sparcml::to_bytes(values.data(), values.size(), bucket, scales.data(), codes.data());
      },
      "values"_a.noconvert(), "bucket"_a, "scales"_a.noconvert(), "codes"_a.noconvert(),
      "Values as signed bytes, scaled by each bucket's largest magnitude");
  m.def(
      "from_bytes",
      [](In<float> scales, In<std::int8_t> codes, std::size_t bucket, Out<float> values) {
        require(
            scales.size() == buckets(values.size(), bucket) && codes.size() == values.size(),
            "from_bytes: one scale a bucket and one code a value");
        nb::gil_scoped_release nogil;
        sparcml::from_bytes(scales.data(), codes.data(), values.size(), bucket, values.data());
      },
      "scales"_a.noconvert(), "codes"_a.noconvert(), "bucket"_a, "values"_a.noconvert(),
      "The values that these bytes and scales stand for");
}
