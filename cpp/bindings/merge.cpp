#include "kernels/merge/merge.h"

#include "bindings/arrays.h"

template <class T>
static void bind(nb::module_& m) {
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

void register_merge(nb::module_& m) {
  bind<float>(m);
  bind<double>(m);
  bind<std::int32_t>(m);
  bind<std::int64_t>(m);
}
