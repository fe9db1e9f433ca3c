#include "kernels/merge_many/merge_many.h"

#include <nanobind/stl/vector.h>

#include "bindings/arrays.h"

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
static void bind(nb::module_& m) {
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

void register_merge_many(nb::module_& m) {
  bind<float>(m);
  bind<double>(m);
  bind<std::int32_t>(m);
  bind<std::int64_t>(m);
}
