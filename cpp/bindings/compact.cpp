#include "kernels/compact/compact.h"

#include "bindings/arrays.h"

template <class T>
static sparcml::Dense<Moved<T>> checked(In<T> dense, Fill<T> fill, std::size_t block,
                                        bool bitwise) {
  require(block > 0 && dense.size() % block == 0,
          "compact, count_nonfill: block must be positive and divide the size of dense");
  require(dense.size() / block <= UINT32_MAX,
          "compact, count_nonfill: dense must have fewer than 2**32 blocks");
  bitwise = bitwise || std::is_integral_v<T>;
  return {moved<T>(dense), dense.size(), block, moved<T>(fill), bitwise};
}

template <class T>
static void bind(nb::module_& m) {
  m.def(
      "compact",
      [](In<T> dense, Fill<T> fill, std::size_t block, bool bitwise, std::size_t limit,
         Out<std::uint32_t> oi, Out<T> ov) {
        const auto d = checked<T>(dense, fill, block, bitwise);
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
        const auto d = checked<T>(dense, fill, block, bitwise);
        nb::gil_scoped_release nogil;
        return sparcml::count_nonfill<Moved<T>>(d);
      },
      "dense"_a.noconvert(), "fill"_a, "block"_a, "bitwise"_a,
      "Return the number of blocks that differ from fill.");
}

void register_compact(nb::module_& m) {
  bind<float>(m);
  bind<double>(m);
  bind<std::int32_t>(m);
  bind<std::int64_t>(m);
}
