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
      "levels"_a.noconvert(), "Bits of the dense and of the sparse code, and levels not zero");
  m.def(
      "elias_encode",
      [](In<std::int8_t> levels, bool sparse, Out<std::uint8_t> out) {
        bool fine = false;
        {
          nb::gil_scoped_release nogil;
          fine = sparcml::elias_encode(levels.data(), levels.size(), sparse, out.data(),
                                       out.size() / 8);
        }
        require(fine && out.size() % 8 == 0, "elias_encode: out must have exactly its words");
      },
      "levels"_a.noconvert(), "sparse"_a, "out"_a.noconvert(),
      "Levels in Elias's omega code, in words of 8 bytes");
  m.def(
      "elias_decode",
      [](Bytes data, bool sparse, std::size_t nonzeros, Out<std::int8_t> levels) {
        require(data.size() % 8 == 0, "elias_decode: words of 8 bytes were due");
        bool fine = false;
        {
          nb::gil_scoped_release nogil;
          fine = sparcml::elias_decode(data.data(), data.size() / 8, sparse, nonzeros,
                                       levels.data(), levels.size());
        }
        require(fine, "elias_decode: this is no code of so many levels");
      },
      "data"_a.noconvert(), "sparse"_a, "nonzeros"_a, "levels"_a.noconvert(),
      "The levels that the words are the code of");
}
