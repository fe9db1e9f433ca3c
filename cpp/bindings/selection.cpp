#include "kernels/selection/selection.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "bindings/arrays.h"

template <class T>
static sparcml::EntryBuffer<T> entry_buffer(Out<std::uint32_t> oi, Out<T> ov) {
  require(oi.size() == ov.size(), "selection: oi and ov must have the same size");
  return {oi.data(), ov.data(), oi.size()};
}

static void require_size(std::size_t size) {
  require(size <= UINT32_MAX, "selection: there must be fewer than 2**32 values");
}

// The old momentum u, the array of the new one, the factor, and whether it is Nesterov's.
template <class T>
using Momentum = std::optional<std::tuple<In<T>, Out<T>, double, bool>>;

template <class T>
static sparcml::ResidualInput<T> residual_input(In<T> residual, In<T> gradient, Out<T> out,
                                                double scale, const Momentum<T>& momentum) {
  require(residual.size() == gradient.size() && residual.size() == out.size(),
          "add_residual: residual, gradient and out must have the same size");
  require_size(out.size());
  sparcml::ResidualInput<T> input{residual.data(), gradient.data(), out.data(), out.size(),
                                  static_cast<T>(scale)};
  if (momentum) {
    const auto& [u, velocity, factor, nesterov] = *momentum;
    require(u.size() == out.size() && velocity.size() == out.size(),
            "add_residual: u and velocity must have the size of out");
    input.momentum = {u.data(), velocity.data(), static_cast<T>(factor), nesterov};
  }
  return input;
}

static void require_k(std::size_t size, std::size_t k, std::size_t buffer) {
  require_size(size);
  require(k <= size, "top_k: k must be at most the size");
  require(buffer >= sparcml::top_k_capacity(size, k),
          "top_k: oi and ov must have at lowest top_k_capacity entries");
}

static void require_buckets(std::size_t size, std::size_t k, std::size_t bucket,
                            std::size_t buffer) {
  require_size(size);
  require(1 <= k && k <= bucket, "bucket_top_k: k must be at lowest 1 and at most bucket");
  const std::size_t expected = size / bucket * k + std::min(k, size % bucket);
  require(buffer == expected, "bucket_top_k: oi and ov must have k entries per bucket");
}

// A positive threshold must stay positive when rounded, or it would select zeros.
template <class T>
static T as_threshold(double threshold) {
  require(threshold >= 0, "at_least: threshold must be at lowest 0");
  const T rounded = static_cast<T>(threshold);
  return threshold > 0 && rounded == 0 ? std::numeric_limits<T>::denorm_min() : rounded;
}

template <class T>
static void bind_top_k(nb::module_& m) {
  m.def(
      "top_k",
      [](In<T> values, std::size_t k, Out<std::uint32_t> oi, Out<T> ov) {
        const sparcml::EntryBuffer<T> buffer = entry_buffer<T>(oi, ov);
        require_k(values.size(), k, buffer.size);
        nb::gil_scoped_release nogil;
        sparcml::top_k<T>(values.data(), values.size(), k, buffer);
      },
      "values"_a.noconvert(), "k"_a, "oi"_a.noconvert(), "ov"_a.noconvert(),
      "Write the k entries of largest magnitude to the front of oi and ov.");
  m.def(
      "top_k_with_residual",
      [](In<T> residual, In<T> gradient, std::size_t k, Out<T> out, Out<std::uint32_t> oi,
         Out<T> ov, double scale, const Momentum<T>& momentum) {
        const sparcml::ResidualInput<T> input =
            residual_input<T>(residual, gradient, out, scale, momentum);
        const sparcml::EntryBuffer<T> buffer = entry_buffer<T>(oi, ov);
        require_k(input.size, k, buffer.size);
        nb::gil_scoped_release nogil;
        return sparcml::top_k_with_residual<T>(input, k, buffer);
      },
      "residual"_a.noconvert(), "gradient"_a.noconvert(), "k"_a, "out"_a.noconvert(),
      "oi"_a.noconvert(), "ov"_a.noconvert(), "scale"_a = 1.0,
      "momentum"_a.noconvert() = nb::none(),
      "Write scale residual + gradient to out, then top_k of it, zeroed in out. Return the "
      "squared norm. add_residual explains momentum.");
}

template <class T>
static void bind_buckets(nb::module_& m) {
  m.def(
      "bucket_top_k",
      [](In<T> values, std::size_t k, std::size_t bucket, Out<std::uint32_t> oi, Out<T> ov) {
        const sparcml::EntryBuffer<T> buffer = entry_buffer<T>(oi, ov);
        require_buckets(values.size(), k, bucket, buffer.size);
        nb::gil_scoped_release nogil;
        sparcml::bucket_top_k<T>(values.data(), values.size(), k, bucket, buffer);
      },
      "values"_a.noconvert(), "k"_a, "bucket"_a, "oi"_a.noconvert(), "ov"_a.noconvert(),
      "Write the k entries of largest magnitude of every bucket.");
  m.def(
      "bucket_top_k_with_residual",
      [](In<T> residual, In<T> gradient, std::size_t k, std::size_t bucket, Out<T> out,
         Out<std::uint32_t> oi, Out<T> ov, double scale, const Momentum<T>& momentum) {
        const sparcml::ResidualInput<T> input =
            residual_input<T>(residual, gradient, out, scale, momentum);
        const sparcml::EntryBuffer<T> buffer = entry_buffer<T>(oi, ov);
        require_buckets(input.size, k, bucket, buffer.size);
        nb::gil_scoped_release nogil;
        return sparcml::bucket_top_k_with_residual<T>(input, k, bucket, buffer);
      },
      "residual"_a.noconvert(), "gradient"_a.noconvert(), "k"_a, "bucket"_a,
      "out"_a.noconvert(), "oi"_a.noconvert(), "ov"_a.noconvert(), "scale"_a = 1.0,
      "momentum"_a.noconvert() = nb::none(),
      "Write scale residual + gradient to out, then bucket_top_k of it, zeroed in out. Return "
      "the squared norm. add_residual explains momentum.");
}

template <class T>
static void bind_at_least(nb::module_& m) {
  m.def(
      "at_least",
      [](In<T> values, double threshold, Out<std::uint32_t> oi, Out<T> ov) {
        const sparcml::EntryBuffer<T> buffer = entry_buffer<T>(oi, ov);
        require_size(values.size());
        const T lowest = as_threshold<T>(threshold);
        nb::gil_scoped_release nogil;
        return sparcml::at_least<T>(values.data(), values.size(), lowest, buffer);
      },
      "values"_a.noconvert(), "threshold"_a, "oi"_a.noconvert(), "ov"_a.noconvert(),
      "Write the entries of at lowest this magnitude that fit. Return their number.");
  m.def(
      "at_least_with_residual",
      [](In<T> residual, In<T> gradient, double threshold, Out<T> out, Out<std::uint32_t> oi,
         Out<T> ov, double scale, const Momentum<T>& momentum) {
        const sparcml::ResidualInput<T> input =
            residual_input<T>(residual, gradient, out, scale, momentum);
        const sparcml::EntryBuffer<T> buffer = entry_buffer<T>(oi, ov);
        const T lowest = as_threshold<T>(threshold);
        std::size_t found = 0;
        double squares = 0;
        {
          nb::gil_scoped_release nogil;
          squares = sparcml::at_least_with_residual<T>(input, lowest, buffer, found);
        }
        return std::make_pair(found, squares);
      },
      "residual"_a.noconvert(), "gradient"_a.noconvert(), "threshold"_a, "out"_a.noconvert(),
      "oi"_a.noconvert(), "ov"_a.noconvert(), "scale"_a = 1.0,
      "momentum"_a.noconvert() = nb::none(),
      "Write scale residual + gradient to out, then at_least of it. Return the number of "
      "entries and the squared norm. add_residual explains momentum.");
}

template <class T>
static void bind_add_residual(nb::module_& m) {
  m.def(
      "add_residual",
      [](In<T> residual, In<T> gradient, Out<T> out, double scale,
         const Momentum<T>& momentum) {
        const sparcml::ResidualInput<T> input =
            residual_input<T>(residual, gradient, out, scale, momentum);
        nb::gil_scoped_release nogil;
        return sparcml::add_residual<T>(input);
      },
      "residual"_a.noconvert(), "gradient"_a.noconvert(), "out"_a.noconvert(), "scale"_a = 1.0,
      "momentum"_a.noconvert() = nb::none(),
      "Write scale residual + gradient to out. Return its squared norm. With "
      "momentum = (u, velocity, m, nesterov), the term of add_momentum replaces the gradient, "
      "and velocity receives the new momentum.");
  m.def(
      "block_squared_norms",
      [](In<T> values, std::size_t block, Out<double> out) {
        require(block > 0, "block_squared_norms: block must be positive");
        const std::size_t expected = values.size() / block + (values.size() % block > 0);
        require(out.size() == expected,
                "block_squared_norms: out must have one value per block");
        nb::gil_scoped_release nogil;
        sparcml::block_squared_norms<T>(values.data(), values.size(), block, out.data());
      },
      "values"_a.noconvert(), "block"_a, "out"_a.noconvert(),
      "Write the squared norm of every block.");
}

void register_selection(nb::module_& m) {
  m.def("top_k_capacity", &sparcml::top_k_capacity, "size"_a, "k"_a,
        "Return the size that oi and ov must have for top_k.");
  bind_top_k<float>(m);
  bind_top_k<double>(m);
  bind_buckets<float>(m);
  bind_buckets<double>(m);
  bind_at_least<float>(m);
  bind_at_least<double>(m);
  bind_add_residual<float>(m);
  bind_add_residual<double>(m);
}
