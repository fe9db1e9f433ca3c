#include "kernels/merge_many/merge_many.h"

#include <nanobind/stl/vector.h>

#include "bindings/arrays.h"

template <class T>
static std::vector<sparcml::Stream<T>> as_streams(const std::vector<In<std::uint32_t>>& indices,
                                                  const std::vector<In<T>>& values,
                                                  std::size_t block, std::size_t room) {
  require(indices.size() == values.size(),
          "merge_many: there must be as many arrays of values as of indices");
  std::vector<sparcml::Stream<T>> streams;
  std::size_t nnz = 0;
  for (std::size_t k = 0; k < indices.size(); ++k) {
    require(has_blocks(values[k].size(), indices[k].size(), block),
            "merge_many: values must have block entries for each index");
    require_ascending(indices[k], "merge_many: indices must ascend");
    streams.push_back({indices[k].data(), values[k].data(), indices[k].size()});
    nnz += indices[k].size();
  }
  require(nnz <= room, "merge_many: the output must have room for the entries of all streams");
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
        const std::size_t room = std::min(oi.size(), ov.size() / block);
        auto streams = as_streams<T>(indices, values, block, room);
        const sparcml::Op o = as_op(op);
        nb::gil_scoped_release nogil;
        return sparcml::merge_many<T>(o, streams.data(), streams.size(), block, oi.data(),
                                      ov.data());
      },
      "op"_a, "indices"_a.noconvert(), "values"_a.noconvert(), "block"_a, "oi"_a.noconvert(),
      "ov"_a.noconvert(),
      "Merges sorted streams, per index in their order; returns the number of entries written");
}

void register_merge_many(nb::module_& m) {
  bind<float>(m);
  bind<double>(m);
}
