#include "linear/column_index/column_index.h"

#include "bindings/arrays.h"

static void require_within(const In<std::uint32_t>& columns, std::size_t words) {
  const std::uint32_t largest = sparcml::largest_column(columns.data(), columns.size());
  require(columns.size() == 0 || largest / 64 < words,
          "bitmap must have a bit for every column");
}

void register_column_index(nb::module_& m) {
  m.def(
      "mark_columns",
      [](In<std::uint32_t> columns, Out<std::uint64_t> bitmap) {
        require_within(columns, bitmap.size());
        nb::gil_scoped_release nogil;
        sparcml::mark_columns(columns.data(), columns.size(), bitmap.data());
      },
      "columns"_a.noconvert(), "bitmap"_a.noconvert(), "Set the bits of the columns.");
  m.def(
      "count_columns",
      [](In<std::uint64_t> bitmap, Out<std::uint32_t> before) {
        require(before.size() == bitmap.size(),
                "count_columns: before must have one count per word of the bitmap");
        nb::gil_scoped_release nogil;
        return sparcml::count_columns(bitmap.data(), bitmap.size(), before.data());
      },
      "bitmap"_a.noconvert(), "before"_a.noconvert(),
      "Write the number of bits set before each word. Return the number of all.");
  m.def(
      "column_positions",
      [](In<std::uint32_t> columns, In<std::uint64_t> bitmap, In<std::uint32_t> before,
         Out<std::uint32_t> out) {
        require(before.size() == bitmap.size(),
                "column_positions: before must have one count per word of the bitmap");
        require(out.size() == columns.size(),
                "column_positions: out must have one position per column");
        require_within(columns, bitmap.size());
        nb::gil_scoped_release nogil;
        sparcml::column_positions(columns.data(), columns.size(), bitmap.data(), before.data(),
                                  out.data());
      },
      "columns"_a.noconvert(), "bitmap"_a.noconvert(), "before"_a.noconvert(),
      "out"_a.noconvert(),
      "Write the positions of columns among the active ones; 2^32 - 1 for others.");
}
