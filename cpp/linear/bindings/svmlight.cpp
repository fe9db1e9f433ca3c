#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/arrays.h"
#include "linear/svmlight/format.h"
#include "linear/svmlight/threaded.h"

template <class T>
using Given = nb::ndarray<T, nb::numpy, nb::ndim<1>>;

// Transfers the array to Python, which frees it.
template <class T>
static Given<T> given(sparcml::Growing<T>& from) {
  const std::size_t size = from.size();
  T* data = from.release();
  nb::capsule owner(data, [](void* p) noexcept { std::free(p); });
  return Given<T>(data, {size}, owner);
}

template <class Value>
static void register_parser(nb::module_& m, const char* name) {
  using Parser = sparcml::ThreadedSvmlightParser<Value>;
  nb::class_<Parser>(m, name, "Parser of rows in the SVMlight format.")
      .def(nb::init<std::uint32_t, std::uint32_t>(), "lowest"_a, "highest"_a)
      .def(
          "feed",
          [](Parser& parser, Bytes text, std::size_t size, std::size_t stop) {
            require(size <= text.size() && text.size() - size >= Parser::padding,
                    "feed: the text must be followed by 8 bytes of padding");
            nb::gil_scoped_release nogil;
            return parser.feed(reinterpret_cast<const char*>(text.data()), size, stop);
          },
          "text"_a.noconvert(), "size"_a, "stop"_a,
          "Read the complete lines that start before stop. Return their bytes.")
      .def_prop_ro(
          "failure",
          [](const Parser& parser)
              -> std::optional<std::tuple<std::size_t, std::size_t, nb::bytes>> {
            const sparcml::Failure* f = parser.failure();
            if (!f) return std::nullopt;
            return std::make_tuple(f->line, f->column,
                                   nb::bytes(f->what.data(), f->what.size()));
          },
          "The first error as (line, column, message), or None.")
      .def_prop_ro("lines", &Parser::lines, "Number of lines read.")
      .def_prop_ro("rows", [](const Parser& parser) { return parser.labels.size(); })
      .def_prop_ro(
          "words",
          [](const Parser& parser) {
            std::vector<nb::bytes> found;
            for (const std::string& each : parser.words)
              found.emplace_back(each.data(), each.size());
            return found;
          },
          "Labels that are words; their labels are positions in it.")
      .def_prop_ro("smallest", &Parser::smallest,
                   "Smallest index so far; highest if there is none.")
      .def_prop_ro("largest", &Parser::largest, "Largest index so far.")
      .def(
          "take",
          [](Parser& parser) {
            return std::make_tuple(given(parser.indptr), given(parser.indices),
                                   given(parser.values), given(parser.labels));
          },
          "Return (indptr, indices, values, labels). The parser cannot be used afterwards.");
}

template <class Value>
static std::pair<std::size_t, std::size_t> format(In<std::int64_t> indptr,
                                                  In<std::uint32_t> indices, In<Value> values,
                                                  In<double> labels, std::size_t row,
                                                  std::uint32_t base, Out<std::uint8_t> out) {
  const std::size_t rows = labels.size();
  require(indptr.size() == rows + 1 && indices.size() == values.size() && row <= rows,
          "svmlight_format: the sizes of indptr, indices, values and labels must match");
  const std::int64_t* const ends = indptr.data();
  bool fine = ends[0] >= 0 && ends[rows] <= static_cast<std::int64_t>(indices.size());
  std::size_t written = 0;
  {
    nb::gil_scoped_release nogil;
    for (std::size_t i = 0; i < rows; ++i) fine &= ends[i] <= ends[i + 1];
    if (fine)
      written = sparcml::svmlight_format<Value>(
          {ends, indices.data(), values.data(), labels.data(), rows}, row, base,
          reinterpret_cast<char*>(out.data()), out.size());
  }
  require(fine, "svmlight_format: indptr must not descend, and must stay within indices");
  return {written, row};
}

template <class Value>
static void register_format(nb::module_& m) {
  m.def("svmlight_format", format<Value>, "indptr"_a.noconvert(), "indices"_a.noconvert(),
        "values"_a.noconvert(), "labels"_a.noconvert(), "row"_a, "base"_a, "out"_a.noconvert(),
        "Write the rows from row that are certain to fit. Return (bytes, next row).");
}

void register_svmlight(nb::module_& m) {
  m.attr("SVMLIGHT_PADDING") = sparcml::SvmlightParser<float>::padding;
  m.def("svmlight_row_bytes", &sparcml::svmlight_row_bytes, "entries"_a,
        "Return the maximum bytes of a row.");
  register_format<float>(m);
  register_format<double>(m);
  register_parser<float>(m, "SvmlightParser32");
  register_parser<double>(m, "SvmlightParser64");
}
