#include "kernels/expand/expand.h"

#include "bindings/arrays.h"

template <class T>
static void bind(nb::module_& m) {
  m.def(
      "bitmap_expand",
      [](Bytes bits, In<T> values, Fill<T> fill, Out<T> out) {
        require(out.size() <= UINT32_MAX,
                "bitmap_expand: out must have fewer than 2**32 values");
        const sparcml::Plane<Moved<T>> plane{bits.data(), bits.size(), moved<T>(values),
                                             values.size()};
        const char* error;
        {
          nb::gil_scoped_release nogil;
          error = sparcml::bitmap_expand<Moved<T>>(plane, moved<T>(fill), moved<T>(out),
                                                   out.size());
        }
        require(!error, error);
      },
      "bits"_a.noconvert(), "values"_a.noconvert(), "fill"_a, "out"_a.noconvert(),
      "Write the values where the bitmap has ones, and fill elsewhere.");
}

void register_expand(nb::module_& m) {
  bind<float>(m);
  bind<double>(m);
  bind<std::int32_t>(m);
  bind<std::int64_t>(m);
}
