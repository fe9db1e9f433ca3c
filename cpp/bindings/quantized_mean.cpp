#include "kernels/quantized_mean/quantized_mean.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <utility>
#include <vector>

#include "bindings/buckets.h"

namespace {

sparcml::Grid as_grid(std::size_t n, std::size_t nbytes, std::size_t bucket, unsigned levels,
                      unsigned bits, int norm) {
  const auto buckets = as_buckets(n, nbytes, bucket, bits, norm, 0);
  require(levels >= 1 && levels < 1u << (bits - 1), "levels must be 1 to 2^(bits - 1) - 1");
  require(bucket % 8 == 0 && bucket <= sparcml::kMaxBucket,
          "bucket must be a multiple of 8, at most 2048");
  return {buckets, levels};
}

}  // namespace

void register_quantized_mean(nb::module_& m) {
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
        const auto grid = as_grid(n, code.size(), bucket, levels, bits, norm);
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
          as_grid(n, code.size(), bucket, levels, bits, 0);
          all.push_back(code.data());
        }
        const auto grid = as_grid(n, codes[0].size(), bucket, levels, bits, 0);
        nb::gil_scoped_release nogil;
        sparcml::mean_from_grid(all.data(), all.size(), own, n, grid, mean.data(),
                                corrected ? corrected->data() : nullptr);
      },
      "codes"_a, "own"_a, "bucket"_a, "levels"_a, "bits"_a, "mean"_a.noconvert(),
      "corrected"_a.none().noconvert() = nb::none(),
      "Mean of codes; subtract one from the corrected gradient");
}
