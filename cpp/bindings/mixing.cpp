#include "kernels/mixing/mixing.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <vector>

#include "bindings/arrays.h"

template <class T>
static std::vector<const T*> pointers(const std::vector<double>& weights,
                                      const std::vector<In<T>>& vectors, std::size_t size,
                                      const char* message) {
  require(weights.size() == vectors.size(), message);
  std::vector<const T*> data;
  for (const auto& vector : vectors) {
    require(vector.size() == size, message);
    data.push_back(vector.data());
  }
  return data;
}

template <class T>
static void bind(nb::module_& m) {
  m.def(
      "weighted_sum",
      [](const std::vector<double>& weights, const std::vector<In<T>>& vectors, double rate,
         std::optional<In<T>> g, std::optional<In<T>> base, Out<T> out) {
        const char* message =
            "weighted_sum: there must be one weight per vector, and all vectors must have the "
            "size of out";
        const auto data = pointers<T>(weights, vectors, out.size(), message);
        require(!data.empty() && (!g || g->size() == out.size()) &&
                    (!base || base->size() == out.size()),
                message);
        nb::gil_scoped_release nogil;
        return sparcml::weighted_sum<T>(weights.data(), data.data(), data.size(),
                                        static_cast<T>(rate), g ? g->data() : nullptr,
                                        base ? base->data() : nullptr, out.data(), out.size());
      },
      "weights"_a, "vectors"_a.noconvert(), "rate"_a, "g"_a.noconvert().none(),
      "base"_a.noconvert().none(), "out"_a.noconvert(),
      "Write the weighted sum of vectors, minus rate g, minus base; return whether it is "
      "finite.");
  m.def(
      "add_differences",
      [](const std::vector<double>& weights, const std::vector<In<T>>& vectors, double gamma,
         In<T> own, In<T> x, double rate, std::optional<In<T>> g, Out<T> out) {
        const char* message =
            "add_differences: there must be one weight per vector, and all vectors must have "
            "the size of out";
        const auto data = pointers<T>(weights, vectors, out.size(), message);
        require(own.size() == out.size() && x.size() == out.size() &&
                    (!g || g->size() == out.size()),
                message);
        nb::gil_scoped_release nogil;
        sparcml::add_differences<T>(weights.data(), data.data(), data.size(), gamma, own.data(),
                                    x.data(), static_cast<T>(rate), g ? g->data() : nullptr,
                                    out.data(), out.size());
      },
      "weights"_a, "vectors"_a.noconvert(), "gamma"_a, "own"_a.noconvert(), "x"_a.noconvert(),
      "rate"_a, "g"_a.noconvert().none(), "out"_a.noconvert(),
      "Write x - rate g plus gamma times the weighted sum of the differences to own.");
  m.def(
      "add_differences_at",
      [](In<std::uint32_t> indices, std::size_t block, const std::vector<double>& weights,
         const std::vector<In<T>>& vectors, double gamma, In<T> own, In<T> x, double rate,
         std::optional<In<T>> g, Out<T> out) {
        const char* message =
            "add_differences_at: there must be one weight per vector, and all vectors must "
            "have "
            "the size of out";
        const auto data = pointers<T>(weights, vectors, out.size(), message);
        require(own.size() == out.size() && x.size() == out.size() &&
                    (!g || g->size() == out.size()),
                message);
        require(block > 0 && out.size() % block == 0,
                "add_differences_at: block must be positive and divide the size of out");
        const std::size_t blocks = out.size() / block, most = UINT32_MAX;
        require_ascending(
            indices,
            "add_differences_at: indices must ascend and be below the number of blocks",
            static_cast<std::uint32_t>(blocks < most ? blocks : most));
        nb::gil_scoped_release nogil;
        sparcml::add_differences_at<T>(indices.data(), indices.size(), block, weights.data(),
                                       data.data(), data.size(), gamma, own.data(), x.data(),
                                       static_cast<T>(rate), g ? g->data() : nullptr,
                                       out.data());
      },
      "indices"_a.noconvert(), "block"_a, "weights"_a, "vectors"_a.noconvert(), "gamma"_a,
      "own"_a.noconvert(), "x"_a.noconvert(), "rate"_a, "g"_a.noconvert().none(),
      "out"_a.noconvert(), "Write the results of add_differences at some blocks of out.");
}

void register_mixing(nb::module_& m) {
  bind<float>(m);
  bind<double>(m);
}
