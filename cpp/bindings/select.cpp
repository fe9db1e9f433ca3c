#include "kernels/select/select.h"

#include <nanobind/stl/pair.h>

#include <algorithm>

#include "bindings/arrays.h"

template <class T>
static sparcml::Room<T> room_of(Out<std::uint32_t> oi, Out<T> ov) {
  require(oi.size() == ov.size(), "select: oi and ov must have the same size");
  return {oi.data(), ov.data(), oi.size()};
}

static void require_size(std::size_t size) {
  require(size <= UINT32_MAX, "select: there must be fewer than 2**32 values");
}

template <class T>
static sparcml::Owing<T> owing_of(In<T> residual, In<T> gradient, Out<T> out) {
  require(residual.size() == gradient.size() && residual.size() == out.size(),
          "owe: residual, gradient and out must have the same size");
  require_size(out.size());
  return {residual.data(), gradient.data(), out.data(), out.size()};
}

static void require_k(std::size_t size, std::size_t k, std::size_t room) {
  require_size(size);
  require(k <= size, "top_k: k must be at most the size");
  require(room >= sparcml::top_k_room(size, k), "top_k: room must be what top_k_room says");
}

static void require_buckets(std::size_t size, std::size_t k, std::size_t bucket,
                            std::size_t room) {
  require_size(size);
  require(1 <= k && k <= bucket, "bucket_top_k: k must be at least 1 and at most bucket");
  const std::size_t due = size / bucket * k + std::min(k, size % bucket);
  require(room == due, "bucket_top_k: the output must have room for k entries a bucket");
}

// Above zero it stays above zero: zeros do not reach it.
template <class T>
static T as_threshold(double threshold) {
  require(threshold >= 0, "at_least: threshold must be at least 0");
  const T rounded = static_cast<T>(threshold);
  return threshold > 0 && rounded == 0 ? std::numeric_limits<T>::denorm_min() : rounded;
}

template <class T>
static void bind_top_k(nb::module_& m) {
  m.def(
      "top_k",
      [](In<T> values, std::size_t k, Out<std::uint32_t> oi, Out<T> ov) {
        const sparcml::Room<T> room = room_of<T>(oi, ov);
        require_k(values.size(), k, room.size);
        nb::gil_scoped_release nogil;
        sparcml::top_k<T>(values.data(), values.size(), k, room);
      },
      "values"_a.noconvert(), "k"_a, "oi"_a.noconvert(), "ov"_a.noconvert(),
      "Writes the k entries of largest magnitude to the front of oi and ov");
  m.def(
      "owe_top_k",
      [](In<T> residual, In<T> gradient, std::size_t k, Out<T> out, Out<std::uint32_t> oi,
         Out<T> ov) {
        const sparcml::Owing<T> owing = owing_of<T>(residual, gradient, out);
        const sparcml::Room<T> room = room_of<T>(oi, ov);
        require_k(owing.size, k, room.size);
        nb::gil_scoped_release nogil;
        return sparcml::owe_top_k<T>(owing, k, room);
      },
      "residual"_a.noconvert(), "gradient"_a.noconvert(), "k"_a, "out"_a.noconvert(),
      "oi"_a.noconvert(), "ov"_a.noconvert(),
      "owe, then top_k of out, which is zeroed there; returns the sum of squares");
}

template <class T>
static void bind_buckets(nb::module_& m) {
  m.def(
      "bucket_top_k",
      [](In<T> values, std::size_t k, std::size_t bucket, Out<std::uint32_t> oi, Out<T> ov) {
        const sparcml::Room<T> room = room_of<T>(oi, ov);
        require_buckets(values.size(), k, bucket, room.size);
        nb::gil_scoped_release nogil;
        sparcml::bucket_top_k<T>(values.data(), values.size(), k, bucket, room);
      },
      "values"_a.noconvert(), "k"_a, "bucket"_a, "oi"_a.noconvert(), "ov"_a.noconvert(),
      "Writes the k entries of largest magnitude of every bucket");
  m.def(
      "owe_bucket_top_k",
      [](In<T> residual, In<T> gradient, std::size_t k, std::size_t bucket, Out<T> out,
         Out<std::uint32_t> oi, Out<T> ov) {
        const sparcml::Owing<T> owing = owing_of<T>(residual, gradient, out);
        const sparcml::Room<T> room = room_of<T>(oi, ov);
        require_buckets(owing.size, k, bucket, room.size);
        nb::gil_scoped_release nogil;
        return sparcml::owe_bucket_top_k<T>(owing, k, bucket, room);
      },
      "residual"_a.noconvert(), "gradient"_a.noconvert(), "k"_a, "bucket"_a,
      "out"_a.noconvert(), "oi"_a.noconvert(), "ov"_a.noconvert(),
      "owe, then bucket_top_k of out, which is zeroed there; returns the sum of squares");
}

template <class T>
static void bind_at_least(nb::module_& m) {
  m.def(
      "at_least",
      [](In<T> values, double threshold, Out<std::uint32_t> oi, Out<T> ov) {
        const sparcml::Room<T> room = room_of<T>(oi, ov);
        require_size(values.size());
        const T least = as_threshold<T>(threshold);
        nb::gil_scoped_release nogil;
        return sparcml::at_least<T>(values.data(), values.size(), least, room);
      },
      "values"_a.noconvert(), "threshold"_a, "oi"_a.noconvert(), "ov"_a.noconvert(),
      "Writes the entries of at least this magnitude that there is room for; returns how many "
      "there are");
  m.def(
      "owe_at_least",
      [](In<T> residual, In<T> gradient, double threshold, Out<T> out, Out<std::uint32_t> oi,
         Out<T> ov) {
        const sparcml::Owing<T> owing = owing_of<T>(residual, gradient, out);
        const sparcml::Room<T> room = room_of<T>(oi, ov);
        const T least = as_threshold<T>(threshold);
        std::size_t found = 0;
        double squares = 0;
        {
          nb::gil_scoped_release nogil;
          squares = sparcml::owe_at_least<T>(owing, least, room, found);
        }
        return std::make_pair(found, squares);
      },
      "residual"_a.noconvert(), "gradient"_a.noconvert(), "threshold"_a, "out"_a.noconvert(),
      "oi"_a.noconvert(), "ov"_a.noconvert(),
      "owe, then at_least of out; returns how many there are and the sum of squares");
}

template <class T>
static void bind_owe(nb::module_& m) {
  m.def(
      "owe",
      [](In<T> residual, In<T> gradient, Out<T> out) {
        const sparcml::Owing<T> owing = owing_of<T>(residual, gradient, out);
        nb::gil_scoped_release nogil;
        return sparcml::owe<T>(owing);
      },
      "residual"_a.noconvert(), "gradient"_a.noconvert(), "out"_a.noconvert(),
      "Writes residual + gradient; returns the sum of its squares");
  m.def(
      "block_squares",
      [](In<T> values, std::size_t block, Out<double> out) {
        require(block > 0, "block_squares: block must be positive");
        const std::size_t due = values.size() / block + (values.size() % block > 0);
        require(out.size() == due, "block_squares: out must have one value for each block");
        nb::gil_scoped_release nogil;
        sparcml::block_squares<T>(values.data(), values.size(), block, out.data());
      },
      "values"_a.noconvert(), "block"_a, "out"_a.noconvert(),
      "Writes the sums of squares of every block");
}

void register_select(nb::module_& m) {
  m.def("top_k_room", &sparcml::top_k_room, "size"_a, "k"_a,
        "The size that oi and ov must have for top_k");
  bind_top_k<float>(m);
  bind_top_k<double>(m);
  bind_buckets<float>(m);
  bind_buckets<double>(m);
  bind_at_least<float>(m);
  bind_at_least<double>(m);
  bind_owe<float>(m);
  bind_owe<double>(m);
}
