#include "kernels/dense/dense.h"

#include "bindings/arrays.h"

template <class T>
static void bind(nb::module_& m) {
  m.def(
      "combine_dense",
      [](int op, In<T> a, In<T> b, Out<T> out) {
        require(a.size() == b.size() && a.size() == out.size(),
                "combine_dense: a, b and out must have the same size");
        const sparcml::Op o = as_op(op);
        nb::gil_scoped_release nogil;
        sparcml::combine_dense(o, a.data(), b.data(), out.data(), out.size());
      },
      "op"_a, "a"_a.noconvert(), "b"_a.noconvert(), "out"_a.noconvert(),
      "Write out[i] = a[i] op b[i].");
}

void register_dense(nb::module_& m) {
  bind<float>(m);
  bind<double>(m);
  bind<std::int32_t>(m);
  bind<std::int64_t>(m);
}
