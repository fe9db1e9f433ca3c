#include "kernels/column_index/column_index.h"

#include <algorithm>

#include "bindings/arrays.h"

static void require_within(const In<std::uint32_t>& numbers, std::size_t words) {
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) most = std::max(most, numbers.data()[i]);
  require(numbers.size() == 0 || most / 64 < words,
          "the plane must have a bit for every number");
}

void register_column_index(nb::module_& m) {
  m.def(
      "mark_columns",
      [](In<std::uint32_t> numbers, Out<std::uint64_t> plane) {
        require_within(numbers, plane.size());
        nb::gil_scoped_release nogil;
        sparcml::mark_columns(numbers.data(), numbers.size(), plane.data());
      },
      "numbers"_a.noconvert(), "plane"_a.noconvert(), "Sets the bits of the numbers");
  m.def(
      "count_columns",
      [](In<std::uint64_t> plane, Out<std::uint32_t> before) {
        require(before.size() == plane.size(), "count_columns: one count a word of the plane");
        nb::gil_scoped_release nogil;
        return sparcml::count_columns(plane.data(), plane.size(), before.data());
      },
      "plane"_a.noconvert(), "before"_a.noconvert(),
      "Counts the bits before each word, and all");
  m.def(
      "column_positions",
      [](In<std::uint32_t> numbers, In<std::uint64_t> plane, In<std::uint32_t> before,
         Out<std::uint32_t> out) {
        require(before.size() == plane.size(),
                "column_positions: one count a word of the plane");
        require(out.size() == numbers.size(), "column_positions: one place a number");
        require_within(numbers, plane.size());
        nb::gil_scoped_release nogil;
        sparcml::column_positions(numbers.data(), numbers.size(), plane.data(), before.data(),
                                  out.data());
      },
      "numbers"_a.noconvert(), "plane"_a.noconvert(), "before"_a.noconvert(),
      "out"_a.noconvert(), "Places of numbers among those in use; 2^32 - 1 for others");
}
