#include "kernels/elias/elias.h"

#include <nanobind/stl/tuple.h>

#include "bindings/arrays.h"

void register_elias(nb::module_& m) {
  m.def(
      "elias_plan",
      [](In<std::int8_t> levels) {
        nb::gil_scoped_release nogil;
        const auto plan = sparcml::elias_plan(levels.data(), levels.size());
        return std::make_tuple(plan.dense_bits, plan.sparse_bits, plan.nonzeros);
      },
      "levels"_a.noconvert(),
      "Return the bits of the dense and the sparse code, and the number of nonzero levels.");
  m.def(
      "elias_encode",
      [](In<std::int8_t> levels, bool sparse, Out<std::uint8_t> out) {
        bool fine = false;
        {
          nb::gil_scoped_release nogil;
          fine = sparcml::elias_encode(levels.data(), levels.size(), sparse, out.data(),
                                       out.size() / 8);
        }
        require(fine && out.size() % 8 == 0,
                "elias_encode: out must have exactly the words of the code");
      },
      "levels"_a.noconvert(), "sparse"_a, "out"_a.noconvert(),
      "Write the omega code of the levels, in words of 8 bytes.");
  m.def(
      "elias_decode",
      [](Bytes data, bool sparse, std::size_t nonzeros, Out<std::int8_t> levels) {
        require(data.size() % 8 == 0, "elias_decode: data must be words of 8 bytes");
        bool fine = false;
        {
          nb::gil_scoped_release nogil;
          fine = sparcml::elias_decode(data.data(), data.size() / 8, sparse, nonzeros,
                                       levels.data(), levels.size());
        }
        require(fine, "elias_decode: data must be a code of this number of levels");
      },
      "data"_a.noconvert(), "sparse"_a, "nonzeros"_a, "levels"_a.noconvert(),
      "Write the levels of a code.");
}
