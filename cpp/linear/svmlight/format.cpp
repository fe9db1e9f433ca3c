#include "linear/svmlight/format.h"

#include <charconv>

namespace sparcml {
namespace {

// The output is large enough: std::to_chars needs at most 24 characters for a double.
template <class Number>
char* put(char* out, Number number) {
  return std::to_chars(out, out + 32, number).ptr;
}

}  // namespace

template <class Value>
std::size_t svmlight_format(const RowsView<Value>& rows, std::size_t& row, std::uint32_t base,
                            char* out, std::size_t capacity) {
  char *p = out, *const end = out + capacity;
  for (; row < rows.rows; ++row) {
    const auto start = rows.indptr[row], stop = rows.indptr[row + 1];
    if (static_cast<std::size_t>(end - p) <
        svmlight_row_bytes(static_cast<std::size_t>(stop - start)))
      break;
    p = put(p, rows.labels[row]);
    for (auto i = start; i < stop; ++i) {
      *p++ = ' ';
      p = put(p, std::uint64_t{rows.indices[i]} + base);
      *p++ = ':';
      p = put(p, rows.values[i]);
    }
    *p++ = '\n';
  }
  return static_cast<std::size_t>(p - out);
}

template std::size_t svmlight_format(const RowsView<float>&, std::size_t&, std::uint32_t, char*,
                                     std::size_t);
template std::size_t svmlight_format(const RowsView<double>&, std::size_t&, std::uint32_t,
                                     char*, std::size_t);

}  // namespace sparcml
