#include "kernels/coalesce/coalesce.h"

#include <algorithm>

#include "bindings/arrays.h"

template <class T>
static void bind(nb::module_& m) {
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

void register_coalesce(nb::module_& m) {
  bind<float>(m);
  bind<double>(m);
  bind<std::int32_t>(m);
  bind<std::int64_t>(m);
}
