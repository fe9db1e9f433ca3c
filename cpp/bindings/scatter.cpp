#include "kernels/scatter/scatter.h"

#include "bindings/arrays.h"

template <class T>
static sparcml::Stream<T> checked(Out<T> dense, In<std::uint32_t> indices, In<T> values,
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
static void bind(nb::module_& m) {
  m.def(
      "scatter",
      [](int op, Out<T> dense, In<std::uint32_t> indices, In<T> values, std::size_t block) {
        const sparcml::Stream<T> stream = checked<T>(dense, indices, values, block);
        const sparcml::Op o = as_op(op);
        nb::gil_scoped_release nogil;
        sparcml::scatter<T>(o, dense.data(), stream, block);
      },
      "op"_a, "dense"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(),
      "block"_a = 1, "Set dense[i] = dense[i] op value.");
  m.def(
      "scatter_assign",
      [](Out<T> dense, In<std::uint32_t> indices, In<T> values, std::size_t block) {
        const std::size_t nnz = checked<T>(dense, indices, values, block).nnz;
        const sparcml::Stream<Moved<T>> stream{indices.data(), moved<T>(values), nnz};
        nb::gil_scoped_release nogil;
        sparcml::scatter_assign<Moved<T>>(moved<T>(dense), stream, block);
      },
      "dense"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(), "block"_a = 1,
      "Set dense[i] = value.");
}

void register_scatter(nb::module_& m) {
  bind<float>(m);
  bind<double>(m);
  bind<std::int32_t>(m);
  bind<std::int64_t>(m);
}
