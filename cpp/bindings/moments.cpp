#include "kernels/moments/moments.h"

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "bindings/arrays.h"

void register_moments(nb::module_& m) {
  m.def(
      "moments",
      [](In<float> values) {
        nb::gil_scoped_release nogil;
        const auto all = sparcml::moments(values.data(), values.size());
        return std::make_tuple(all.largest, all.sum, all.squares, all.count);
      },
      "values"_a.noconvert(),
      "Return the max magnitude, sum, sum of squares and count of values except NaN.");
}
