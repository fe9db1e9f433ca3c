// Bindings of kernels that merge, add and rearrange streams.
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "bindings/arrays.h"
#include "kernels/ascending/ascending.h"
#include "kernels/coalesce/coalesce.h"
#include "kernels/compact/compact.h"
#include "kernels/dense/dense.h"
#include "kernels/merge/merge.h"
#include "kernels/merge_many/merge_many.h"
#include "kernels/scatter/scatter.h"

static void register_ascending(nb::module_& m) {
  m.def(
      "ascending_prefix",
      [](In<std::uint32_t> indices, std::uint32_t blocks) {
        nb::gil_scoped_release nogil;
        return sparcml::ascending_prefix(indices.data(), indices.size(), blocks);
      },
      "indices"_a.noconvert(), "blocks"_a,
      "Return the length of the longest prefix that ascends strictly and is below blocks.");
}

template <class T>
static void bind_coalesce(nb::module_& m) {
  m.def(
      "coalesce",
      [](In<std::int64_t> indices, In<T> values, std::size_t block, Out<std::uint32_t> oi,
         Out<T> ov) {
        const std::size_t n = indices.size();
        require(block > 0 && has_blocks(values.size(), n, block),
                "coalesce: values must have block values per index");
        require(n <= UINT32_MAX, "coalesce: there must be fewer than 2**32 rows");
        require(oi.size() >= n && ov.size() / block >= n,
                "coalesce: oi and ov must hold all rows");
        require(std::all_of(indices.data(), indices.data() + n,
                            [](std::int64_t i) { return i >= 0 && i <= UINT32_MAX; }),
                "coalesce: indices must be in [0, 2**32)");
        nb::gil_scoped_release nogil;
        return sparcml::coalesce<T>(indices.data(), values.data(), n, block, oi.data(),
                                    ov.data());
      },
      "indices"_a.noconvert(), "values"_a.noconvert(), "block"_a, "oi"_a.noconvert(),
      "ov"_a.noconvert(),
      "Sort rows by index and sum those of equal index, from first to last. Return the number "
      "of indices.");
}

static void register_coalesce(nb::module_& m) {
  bind_coalesce<float>(m);
  bind_coalesce<double>(m);
  bind_coalesce<std::int32_t>(m);
  bind_coalesce<std::int64_t>(m);
}

template <class T>
static sparcml::Dense<Moved<T>> checked_dense(In<T> dense, Fill<T> fill, std::size_t block,
                                              bool bitwise) {
  require(block > 0 && dense.size() % block == 0,
          "compact, count_nonfill: block must be positive and divide the size of dense");
  require(dense.size() / block <= UINT32_MAX,
          "compact, count_nonfill: dense must have fewer than 2**32 blocks");
  bitwise = bitwise || std::is_integral_v<T>;
  return {moved<T>(dense), dense.size(), block, moved<T>(fill), bitwise};
}

template <class T>
static void bind_compact(nb::module_& m) {
  m.def(
      "compact",
      [](In<T> dense, Fill<T> fill, std::size_t block, bool bitwise, std::size_t limit,
         Out<std::uint32_t> oi, Out<T> ov) {
        const auto d = checked_dense<T>(dense, fill, block, bitwise);
        require(oi.size() >= limit && ov.size() / block >= limit,
                "compact: oi and ov must hold limit blocks");
        nb::gil_scoped_release nogil;
        return sparcml::compact<Moved<T>>(d, limit, oi.data(), moved<T>(ov));
      },
      "dense"_a.noconvert(), "fill"_a, "block"_a, "bitwise"_a, "limit"_a, "oi"_a.noconvert(),
      "ov"_a.noconvert(),
      "Write the blocks that differ from fill. Return their number, at most limit + 1.");
  m.def(
      "count_nonfill",
      [](In<T> dense, Fill<T> fill, std::size_t block, bool bitwise) {
        const auto d = checked_dense<T>(dense, fill, block, bitwise);
        nb::gil_scoped_release nogil;
        return sparcml::count_nonfill<Moved<T>>(d);
      },
      "dense"_a.noconvert(), "fill"_a, "block"_a, "bitwise"_a,
      "Return the number of blocks that differ from fill.");
}

static void register_compact(nb::module_& m) {
  bind_compact<float>(m);
  bind_compact<double>(m);
  bind_compact<std::int32_t>(m);
  bind_compact<std::int64_t>(m);
}

template <class T>
static void bind_dense(nb::module_& m) {
  m.def(
      "combine_dense",
      [](int op, In<T> a, In<T> b, Out<T> out) {
        require(a.size() == b.size() && a.size() == out.size(),
                "combine_dense: a, b and out must have the same size");
        const sparcml::Op o = as_op(op);
        nb::gil_scoped_release nogil;
        sparcml::combine_dense<T>(o, a.data(), b.data(), out.data(), out.size());
      },
      "op"_a, "a"_a.noconvert(), "b"_a.noconvert(), "out"_a.noconvert(),
      "Write out[i] = a[i] op b[i].");
}

template <class T>
static void bind_momentum(nb::module_& m) {
  m.def(
      "add_momentum",
      [](double momentum, bool nesterov, In<T> u, In<T> g, Out<T> velocity, Out<T> term) {
        require(u.size() == g.size() && u.size() == velocity.size(),
                "add_momentum: u, g and velocity must have the same size");
        require(!nesterov || u.size() == term.size(),
                "add_momentum: term must have the size of u if nesterov");
        nb::gil_scoped_release nogil;
        sparcml::add_momentum<T>(static_cast<T>(momentum), nesterov, u.data(), g.data(),
                                 velocity.data(), term.data(), u.size());
      },
      "momentum"_a, "nesterov"_a, "u"_a.noconvert(), "g"_a.noconvert(),
      "velocity"_a.noconvert(), "term"_a.noconvert(),
      "Write velocity = momentum u + g; with nesterov, velocity = momentum (u + g) and term = "
      "velocity + g.");
}

static void register_dense(nb::module_& m) {
  bind_dense<float>(m);
  bind_dense<double>(m);
  bind_dense<std::int32_t>(m);
  bind_dense<std::int64_t>(m);
  bind_momentum<float>(m);
  bind_momentum<double>(m);
}

template <class T>
static void bind_merge(nb::module_& m) {
  m.def(
      "merge",
      [](int op, In<std::uint32_t> ai, In<T> av, In<std::uint32_t> bi, In<T> bv,
         std::size_t block, Out<std::uint32_t> oi, Out<T> ov) {
        require(block > 0, "merge: block must be positive");
        require(
            has_blocks(av.size(), ai.size(), block) && has_blocks(bv.size(), bi.size(), block),
            "merge: values must have block values per index");
        require(oi.size() >= ai.size() + bi.size() && ov.size() >= av.size() + bv.size(),
                "merge: oi and ov must hold all entries of a and b");
        require_ascending(ai, "merge: indices must ascend");
        require_ascending(bi, "merge: indices must ascend");
        const sparcml::Op o = as_op(op);
        nb::gil_scoped_release nogil;
        return sparcml::merge<T>(o, {ai.data(), av.data(), ai.size()},
                                 {bi.data(), bv.data(), bi.size()}, block, oi.data(),
                                 ov.data());
      },
      "op"_a, "ai"_a.noconvert(), "av"_a.noconvert(), "bi"_a.noconvert(), "bv"_a.noconvert(),
      "block"_a, "oi"_a.noconvert(), "ov"_a.noconvert(),
      "Merge two sorted streams. Return the number of entries written.");
}

static void register_merge(nb::module_& m) {
  bind_merge<float>(m);
  bind_merge<double>(m);
  bind_merge<std::int32_t>(m);
  bind_merge<std::int64_t>(m);
}

template <class T>
static std::vector<sparcml::Stream<T>> as_streams(const std::vector<In<std::uint32_t>>& indices,
                                                  const std::vector<In<T>>& values,
                                                  std::size_t block, std::size_t capacity) {
  require(indices.size() == values.size(),
          "merge_many: indices and values must have the same number of arrays");
  std::vector<sparcml::Stream<T>> streams;
  std::size_t nnz = 0;
  for (std::size_t k = 0; k < indices.size(); ++k) {
    require(has_blocks(values[k].size(), indices[k].size(), block),
            "merge_many: values must have block values per index");
    require_ascending(indices[k], "merge_many: indices must ascend");
    streams.push_back({indices[k].data(), values[k].data(), indices[k].size()});
    nnz += indices[k].size();
  }
  require(nnz <= capacity, "merge_many: oi and ov must hold the entries of all streams");
  return streams;
}

template <class T>
static void bind_merge_many(nb::module_& m) {
  m.def(
      "merge_many",
      [](int op, const std::vector<In<std::uint32_t>>& indices,
         const std::vector<In<T>>& values, std::size_t block, Out<std::uint32_t> oi,
         Out<T> ov) {
        require(block > 0, "merge_many: block must be positive");
        const std::size_t capacity = std::min(oi.size(), ov.size() / block);
        auto streams = as_streams<T>(indices, values, block, capacity);
        const sparcml::Op o = as_op(op);
        nb::gil_scoped_release nogil;
        return sparcml::merge_many<T>(o, streams.data(), streams.size(), block, oi.data(),
                                      ov.data());
      },
      "op"_a, "indices"_a.noconvert(), "values"_a.noconvert(), "block"_a, "oi"_a.noconvert(),
      "ov"_a.noconvert(),
      "Merge sorted streams, folded per index in their order. Return the number of entries.");
}

static void register_merge_many(nb::module_& m) {
  bind_merge_many<float>(m);
  bind_merge_many<double>(m);
  bind_merge_many<std::int32_t>(m);
  bind_merge_many<std::int64_t>(m);
}

template <class T>
static sparcml::Stream<T> checked_entries(Out<T> dense, In<std::uint32_t> indices, In<T> values,
                                          std::size_t block) {
  require(block > 0 && dense.size() % block == 0,
          "scatter: block must be positive and divide the size of dense");
  require(has_blocks(values.size(), indices.size(), block),
          "scatter: values must have block values per index");
  const std::size_t blocks = dense.size() / block, most = UINT32_MAX;
  require_ascending(indices, "scatter: indices must ascend and be below the number of blocks",
                    static_cast<std::uint32_t>(blocks < most ? blocks : most));
  return {indices.data(), values.data(), indices.size()};
}

template <class T>
static void bind_scatter(nb::module_& m) {
  m.def(
      "scatter",
      [](int op, Out<T> dense, In<std::uint32_t> indices, In<T> values, std::size_t block) {
        const sparcml::Stream<T> stream = checked_entries<T>(dense, indices, values, block);
        const sparcml::Op o = as_op(op);
        nb::gil_scoped_release nogil;
        sparcml::scatter<T>(o, dense.data(), stream, block);
      },
      "op"_a, "dense"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(),
      "block"_a = 1, "Set dense[i] = dense[i] op value.");
  m.def(
      "scatter_assign",
      [](Out<T> dense, In<std::uint32_t> indices, In<T> values, std::size_t block) {
        const std::size_t nnz = checked_entries<T>(dense, indices, values, block).nnz;
        const sparcml::Stream<Moved<T>> stream{indices.data(), moved<T>(values), nnz};
        nb::gil_scoped_release nogil;
        sparcml::scatter_assign<Moved<T>>(moved<T>(dense), stream, block);
      },
      "dense"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(), "block"_a = 1,
      "Set dense[i] = value.");
}

static void register_scatter(nb::module_& m) {
  bind_scatter<float>(m);
  bind_scatter<double>(m);
  bind_scatter<std::int32_t>(m);
  bind_scatter<std::int64_t>(m);
}

void register_reduction(nb::module_& m) {
  register_ascending(m);
  register_coalesce(m);
  register_compact(m);
  register_dense(m);
  register_merge(m);
  register_merge_many(m);
  register_scatter(m);
}
