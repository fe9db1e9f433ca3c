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

void register_dense(nb::module_& m) {
  bind<float>(m);
  bind<double>(m);
  bind<std::int32_t>(m);
  bind<std::int64_t>(m);
  bind_momentum<float>(m);
  bind_momentum<double>(m);
}
