// Gradients of many rows, for any instruction set.
//
// Isa::below counts the columns of a row below a limit. Isa::differs returns a mask of the
// nonzeros among 64 values, and Isa::clear sets them to zero. Isa::dot adds value * weight in
// eight lanes, entry k in lane k mod 8, then the lanes four, two and one apart: the same bits
// on every instruction set.
#include "linear/models/gradient.h"
#include "linear/models/parts.h"
#include "linear/models/ranges.h"
#include "linear/models/sums.h"

namespace sparcml::linear {
namespace {

constexpr std::size_t kDense = 8;  // columns per entry; if fewer, all sums are scanned
constexpr double kShort = 16;      // entries per visit; if fewer, rows are processed one by one

template <class T>
struct Scratch {
  std::vector<T> sums;
  std::vector<std::uint64_t> marks;
  std::vector<Cursor<T>> cursors;
  std::vector<double> slopes;  // of the rows; at first their margins
  std::vector<Part<T>> parts;
};

template <class T>
Scratch<T>& scratch() {
  static thread_local Scratch<T> kept;
  return kept;
}

template <class T>
Scratch<T>& part_scratch() {
  static thread_local Scratch<T> kept;
  return kept;
}

template <class T>
Cursor<T> cursor(const Rows<T>& rows, std::int64_t row, std::size_t number) {
  const std::int64_t from = rows.indptr[row], to = rows.indptr[row + 1];
  return {rows.indices + from, rows.indices + to, rows.values + from, number};
}

// Returns cursors at the start of the nonempty rows with `wanted(i)`.
template <class T, class Wanted>
void start(std::vector<Cursor<T>>& cursors, const Rows<T>& rows, const std::int64_t* chosen,
           std::size_t count, Wanted wanted) {
  cursors.clear();
  for (std::size_t i = 0; i < count; ++i) {
    if (rows.size(chosen[i]) && wanted(i)) cursors.push_back(cursor(rows, chosen[i], i));
  }
}

// Returns w.x over the entries of a row below column `limit`, with pending updates of w
// applied; `count` is their number.
template <class Isa, Lazy lazy, class T>
inline double product(const Model<T>& m, std::size_t now, const Cursor<T>& c,
                      std::uint64_t base, std::uint64_t limit, std::size_t& count) {
  if constexpr (lazy == Lazy::none) return Isa::dot(m.weights, c, base, limit, count);
  count = Isa::below(c.at, c.end, limit);
  double sums[4] = {};
  for (std::size_t k = 0; k < count; ++k)
    sums[k % 4] += c.value[k] * due<lazy>(m, now, c.at[k]);
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

// Each row of this range prefetches some weights of the next one.
template <class Isa, Lazy lazy, class T>
void products_by_range(Scratch<T>& s, const Ranges& ranges, const Model<T>& m, double* out) {
  const std::size_t now = m.now();
  const char* next = nullptr;
  const char* stop = nullptr;
  std::size_t step = 0;
  by_ranges(
      s.cursors, ranges,
      [&](std::uint64_t base) {
        const std::uint64_t first = std::min<std::uint64_t>(base + ranges.size(), m.features);
        const std::uint64_t last = std::min<std::uint64_t>(first + ranges.size(), m.features);
        next = reinterpret_cast<const char*>(place<lazy>(m, first));
        stop = reinterpret_cast<const char*>(place<lazy>(m, last));
        step =
            (static_cast<std::size_t>(stop - next) / s.cursors.size() + kLine) / kLine * kLine;
      },
      [&](const Cursor<T>& c, std::uint64_t base, std::uint64_t limit) {
        for (const char* end = std::min(stop, next + step); next < end; next += kLine)
          __builtin_prefetch(next, 0, 2);
        std::size_t count;
        out[c.row] += product<Isa, lazy>(m, now, c, base, limit, count);
        return count;
      },
      [](std::uint64_t) {});
}

// Prefetches the entries of the row after next and the weights of the next row.
template <class Isa, Lazy lazy, class T>
void products_by_row(const Rows<T>& rows, const std::int64_t* chosen, std::size_t count,
                     const Model<T>& m, double* out) {
  const std::size_t now = m.now();
  for (std::size_t i = 0; i < count; ++i) {
    if (i + 2 < count) fetch_row(rows, chosen[i + 2]);
    if (i + 1 < count) fetch_weights<lazy>(rows, chosen[i + 1], m);
    std::size_t all;
    out[i] = product<Isa, lazy>(m, now, cursor(rows, chosen[i], i), 0, m.features, all);
  }
}

// Adds w.x of the chosen rows to `out`, with pending updates of w applied, without its scale.
// Ranges are those of all rows: they decide in which order the products of a row are added.
template <class Isa, class T>
void products(const Rows<T>& rows, const std::int64_t* chosen, std::size_t count,
              const Model<T>& model, double* out) {
  const std::size_t nnz = entries(rows, chosen, count);
  const Ranges ranges(model.features, count, nnz);
  const std::size_t parts = std::min(part_count(nnz), threads());  // each reads all weights
  for_parts(parts, [&](std::size_t part) {
    const std::size_t from = part_begin(count, parts, part);
    const std::size_t some = part_begin(count, parts, part + 1) - from;
    with_lazy(model, [&](auto lazy) {
      if (ranges.visit < kShort && model.features <= INT32_MAX)  // see Isa::dot
        return products_by_row<Isa, decltype(lazy)::value>(rows, chosen + from, some, model,
                                                           out + from);
      Scratch<T>& s = scratch<T>();
      start(s.cursors, rows, chosen + from, some, [](std::size_t) { return true; });
      products_by_range<Isa, decltype(lazy)::value>(s, ranges, model, out + from);
    });
  });
}

template <class Isa, bool marking, class T>
std::size_t combine_ranges(Scratch<T>& s, const Ranges& ranges, const double* slopes,
                           std::size_t room, std::uint32_t* indices, T* values) {
  Sums<Isa, T, marking> sums(s.sums, s.marks, ranges.size());
  std::size_t n = 0;
  by_ranges(
      s.cursors, ranges, [](std::uint64_t) {},
      [&](const Cursor<T>& c, std::uint64_t, std::uint64_t limit) {
        const std::size_t count = Isa::below(c.at, c.end, limit);
        sums.add(c.at, c.value, count, static_cast<T>(slopes[c.row]));
        return count;
      },
      [&](std::uint64_t base) { n += sums.drain(base, room - n, indices + n, values + n); });
  return n;
}

template <class Isa, class T>
std::size_t combine_cursors(Scratch<T>& s, const Ranges& ranges, const double* slopes,
                            bool marking, std::size_t room, std::uint32_t* indices, T* values) {
  return marking ? combine_ranges<Isa, true>(s, ranges, slopes, room, indices, values)
                 : combine_ranges<Isa, false>(s, ranges, slopes, room, indices, values);
}

// Combines each part of the columns by itself, and calls take(part). The sum of a column adds
// the rows in their order, whatever the parts are.
template <class Isa, class T, class Take>
void combine_parts(Scratch<T>& s, const Ranges& ranges, const double* slopes, bool marking,
                   std::size_t nnz, Take take) {
  const std::size_t count = part_count(nnz);
  divide(s.parts, s.cursors, ranges, nnz, count);
  for_parts(count, [&](std::size_t p) {
    Part<T>& part = s.parts[p];
    Scratch<T>& own = part_scratch<T>();  // parts read the cursors of the caller's
    const std::size_t room = restrict_to(own.cursors, s.cursors, part);
    if (part.indices.size() < room) part.indices.resize(room), part.values.resize(room);
    part.nnz = combine_cursors<Isa>(own, ranges, slopes, marking, room, part.indices.data(),
                                    part.values.data());
    take(part);
  });
}

// Calls all(ranges, marking, nnz) or, for several threads, parts(ranges, marking, nnz).
template <class T, class All, class Parts>
void divided(Scratch<T>& s, const Rows<T>& rows, const std::int64_t* chosen,
             const double* slopes, std::size_t count, std::size_t features, All all,
             Parts parts) {
  start(s.cursors, rows, chosen, count, [&](std::size_t i) { return slopes[i] != 0.0; });
  const std::size_t nnz = entries(rows, chosen, count);
  const Ranges ranges(features, s.cursors.size(), nnz);
  const bool marking = nnz < features / kDense;
  part_count(nnz) > 1 ? parts(ranges, marking, nnz) : all(ranges, marking, nnz);
}

template <class Isa, class T>
std::size_t combine_any(const Rows<T>& rows, const std::int64_t* chosen, const double* slopes,
                        std::size_t count, std::size_t features, std::uint32_t* indices,
                        T* values) {
  Scratch<T>& s = scratch<T>();
  std::size_t n = 0;
  divided(
      s, rows, chosen, slopes, count, features,
      [&](const Ranges& ranges, bool marking, std::size_t nnz) {
        n = combine_cursors<Isa>(s, ranges, slopes, marking, std::min(nnz, features), indices,
                                 values);
      },
      [&](const Ranges& ranges, bool marking, std::size_t nnz) {
        combine_parts<Isa>(s, ranges, slopes, marking, nnz, [](const Part<T>&) {});
        for (Part<T>& part : s.parts) part.offset = n, n += part.nnz;
        for_parts(s.parts.size(), [&](std::size_t p) {
          const Part<T>& part = s.parts[p];
          std::copy_n(part.indices.data(), part.nnz, indices + part.offset);
          std::copy_n(part.values.data(), part.nnz, values + part.offset);
        });
      });
  return n;
}

template <class Isa, class T>
void combine_each_any(const Rows<T>& rows, const std::int64_t* chosen, const double* slopes,
                      std::size_t count, std::size_t features, const Take<T>& take) {
  Scratch<T>& s = scratch<T>();
  const auto taken = [&](const Part<T>& part) {
    take(part.indices.data(), part.values.data(), part.nnz);
  };
  divided(
      s, rows, chosen, slopes, count, features,
      [&](const Ranges& ranges, bool marking, std::size_t nnz) {
        const std::size_t room = std::min(nnz, features);
        s.parts.resize(std::max<std::size_t>(s.parts.size(), 1));
        Part<T>& all = s.parts[0];
        if (all.indices.size() < room) all.indices.resize(room), all.values.resize(room);
        all.nnz = combine_cursors<Isa>(s, ranges, slopes, marking, room, all.indices.data(),
                                       all.values.data());
        taken(all);
      },
      [&](const Ranges& ranges, bool marking, std::size_t nnz) {
        combine_parts<Isa>(s, ranges, slopes, marking, nnz, taken);
      });
}

template <class Isa, class T>
Total slopes_any(const Rows<T>& rows, const std::int64_t* chosen, std::size_t count, Loss loss,
                 double share, const Model<T>& model, double* out) {
  std::fill_n(out, count, 0.0);
  products<Isa>(rows, chosen, count, model, out);
  Total total{0, 0.0, 0.0};
  for (std::size_t i = 0; i < count; ++i) {
    const double margin = model.scale() * out[i] + model.intercept();
    const double weight = rows.weight(chosen[i]);
    const Slope found = slope(loss, rows.labels[chosen[i]], margin);
    out[i] = share * weight * found.derivative;
    total.slope += out[i];
    total.loss += weight * found.value;
  }
  return total;
}

template <class Isa, class T>
Total gradient_any(const Rows<T>& rows, const std::int64_t* chosen, std::size_t count,
                   Loss loss, double share, const Model<T>& model, std::uint32_t* indices,
                   T* values) {
  std::vector<double>& slopes = scratch<T>().slopes;
  slopes.resize(count);
  Total total = slopes_any<Isa>(rows, chosen, count, loss, share, model, slopes.data());
  total.nnz =
      combine_any<Isa>(rows, chosen, slopes.data(), count, model.features, indices, values);
  return total;
}

}  // namespace
}  // namespace sparcml::linear
