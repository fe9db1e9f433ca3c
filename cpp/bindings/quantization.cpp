// Bindings of kernels that quantize.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "kernels/buckets.h"
#include "kernels/grid/grid.h"
#include "kernels/integer/integer.h"
#include "kernels/moments/moments.h"
#include "kernels/natural/natural.h"
#include "kernels/onebit/onebit.h"
#include "kernels/quantized_mean/quantized_mean.h"
#include "kernels/table/table.h"

// Checked arguments of the kernels that quantize in buckets.

inline sparcml::Buckets as_buckets(std::size_t n, std::size_t nbytes, std::size_t bucket,
                                   unsigned bits, int norm, float scale) {
  require(bucket > 0, "bucket must be at least 1");
  require(bits >= 2 && bits <= 8, "bits must be 2 to 8");
  require(norm >= 0 && norm <= 2, "norm must be 0 (max), 1 (l2) or 2 (given)");
  const std::size_t buckets = n / bucket + (n % bucket != 0);
  require(nbytes == 4 * buckets + n / 8 * bits + (n % 8 * bits + 7) / 8,
          "code must have 4 bytes per bucket and the bits of all values");
  return {bucket, bits, static_cast<sparcml::Norm>(norm), scale};
}

static sparcml::Grid as_grid(const sparcml::Buckets& buckets, unsigned levels) {
  require(levels >= 1 && levels < 1u << (buckets.bits - 1),
          "levels must be 1 to 2^(bits - 1) - 1");
  return {buckets, levels};
}

static void register_grid(nb::module_& m) {
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

static sparcml::Table as_table(const sparcml::Buckets& buckets, const In<float>& levels) {
  const std::size_t n = levels.size();
  require(n >= 2 && n <= 1u << (buckets.bits - 1), "levels must be 2 to 2^(bits - 1)");
  const float* level = levels.data();
  bool ascending = level[0] == 0 && level[n - 1] == 1;
  for (std::size_t i = 1; i < n; ++i) ascending = ascending && level[i] > level[i - 1];
  require(ascending, "levels must ascend from 0 to 1");
  return {buckets, level, static_cast<unsigned>(n - 1)};
}

static void register_table(nb::module_& m) {
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

static void register_integer(nb::module_& m) {
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

static void register_moments(nb::module_& m) {
  m.def(
      "moments",
      [](In<float> values) {
        nb::gil_scoped_release nogil;
        const auto all = sparcml::moments(values.data(), values.size());
        return std::make_tuple(all.largest, all.sum, all.squares, all.count);
      },
      "values"_a.noconvert(),
      "Return the max magnitude, sum, sum of squares and count of values except NaN.");
}

static void require_room(std::size_t n, std::size_t nbytes) {
  require(nbytes == n + n / 8 + (n % 8 != 0), "code must have 9 bits per value");
}

static void register_natural(nb::module_& m) {
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

// `each` numbers a bucket, and a bit a value.
static void check(std::size_t n, std::size_t bucket, std::size_t numbers, std::size_t each,
                  std::size_t bytes) {
  require(bucket > 0, "bucket must be at least 1");
  const std::size_t buckets = n / bucket + (n % bucket != 0);
  require(numbers == each * buckets && bytes == n / 8 + (n % 8 != 0),
          "onebit: levels must have two values or scales one per bucket, and bits one bit per "
          "value");
}

static void register_onebit(nb::module_& m) {
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

namespace {

sparcml::Grid as_fused_grid(std::size_t n, std::size_t nbytes, std::size_t bucket,
                            unsigned levels, unsigned bits, int norm) {
  require(bucket % 8 == 0 && bucket <= sparcml::kMaxBucket,
          "bucket must be a multiple of 8, at most 2048");
  return as_grid(as_buckets(n, nbytes, bucket, bits, norm, 0), levels);
}

}  // namespace

static void register_quantized_mean(nb::module_& m) {
  m.attr("MAX_FUSED_BUCKET") = sparcml::kMaxBucket;
  m.def(
      "to_grid_corrected",
      [](std::optional<In<float>> residual, In<float> gradient, float scale,
         std::optional<Out<float>> corrected, std::size_t bucket, unsigned levels,
         unsigned bits, int norm, std::uint64_t seed, Out<std::uint8_t> code) {
        const std::size_t n = gradient.size();
        require(residual.has_value() == corrected.has_value(),
                "residual and corrected must both be given, or neither");
        require(!residual || (residual->size() == n && corrected->size() == n),
                "residual, gradient and corrected must have the same size");
        const auto grid = as_fused_grid(n, code.size(), bucket, levels, bits, norm);
        const sparcml::CorrectedGradient input{
            residual ? residual->data() : nullptr, gradient.data(),
            corrected ? corrected->data() : nullptr, n, scale};
        sparcml::Found found;
        {
          nb::gil_scoped_release nogil;
          found = sparcml::to_grid_corrected(input, grid, seed, code.data());
        }
        return std::pair(found.nonzeros, found.finite);
      },
      "residual"_a.none().noconvert(), "gradient"_a.noconvert(), "scale"_a,
      "corrected"_a.none().noconvert(), "bucket"_a, "levels"_a, "bits"_a, "norm"_a, "seed"_a,
      "code"_a.noconvert(), "Encode scale * residual + gradient; (nonzeros, all finite)");
  m.def(
      "mean_from_grid",
      [](const std::vector<Bytes>& codes, std::size_t own, std::size_t bucket, unsigned levels,
         unsigned bits, Out<float> mean, std::optional<Out<float>> corrected) {
        const std::size_t n = mean.size();
        require(!codes.empty() && own < codes.size(), "own must be the position of a code");
        require(!corrected || corrected->size() == n,
                "mean and corrected must have the same size");
        std::vector<const std::uint8_t*> all;
        for (const Bytes& code : codes) {
          as_fused_grid(n, code.size(), bucket, levels, bits, 0);
          all.push_back(code.data());
        }
        const auto grid = as_fused_grid(n, codes[0].size(), bucket, levels, bits, 0);
        nb::gil_scoped_release nogil;
        sparcml::mean_from_grid(all.data(), all.size(), own, n, grid, mean.data(),
                                corrected ? corrected->data() : nullptr);
      },
      "codes"_a, "own"_a, "bucket"_a, "levels"_a, "bits"_a, "mean"_a.noconvert(),
      "corrected"_a.none().noconvert() = nb::none(),
      "Mean of codes; subtract one from the corrected gradient");
}

void register_quantization(nb::module_& m) {
  register_grid(m);
  register_table(m);
  register_integer(m);
  register_moments(m);
  register_natural(m);
  register_onebit(m);
  register_quantized_mean(m);
}
