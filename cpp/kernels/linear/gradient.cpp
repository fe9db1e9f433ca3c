#include "kernels/linear/gradient.h"

#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "kernels/linear/ranges.h"

namespace sparcml::linear {
namespace {

constexpr std::size_t kCell = 16;   // columns that are looked at together
constexpr std::size_t kAhead = 32;  // entries whose weights are on their way from memory
constexpr std::size_t kLanes = 8;   // entries of a row, all of other columns

// A bit for each value of a cell that is not zero; NaN is not.
#ifdef __SSE2__  // in every x86-64
inline unsigned nonzero(const float* cell) {
  unsigned bits = 0;
  for (int i = 0; i < 16; i += 4)
    bits |= static_cast<unsigned>(
                _mm_movemask_ps(_mm_cmpneq_ps(_mm_loadu_ps(cell + i), _mm_setzero_ps())))
            << i;
  return bits;
}

inline unsigned nonzero(const double* cell) {
  unsigned bits = 0;
  for (int i = 0; i < 16; i += 2)
    bits |= static_cast<unsigned>(
                _mm_movemask_pd(_mm_cmpneq_pd(_mm_loadu_pd(cell + i), _mm_setzero_pd())))
            << i;
  return bits;
}
#else
template <class T>
inline unsigned nonzero(const T* cell) {
  unsigned bits = 0;
  for (unsigned i = 0; i < kCell; ++i) bits |= static_cast<unsigned>(cell[i] != 0) << i;
  return bits;
}
#endif

// Sums by column of one range; all zero between ranges and calls. Several entries are read
// before any of them is written, so that no read waits for a write; marks are only written.
template <class T>
struct Sums {
  std::vector<T> sums;
  std::vector<std::uint8_t> marks;  // of cells

  void fit(int bits) {
    const std::size_t range = std::size_t{1} << bits;
    if (sums.size() >= range) return;
    sums.resize(range);
    marks.resize(range / kCell);
  }

  void add(const std::uint32_t* columns, const T* values, std::size_t count, double slope,
           std::uint32_t mask) {
    T* const sum = sums.data();
    std::uint8_t* const mark = marks.data();
    std::size_t k = 0;
    for (; k + kLanes <= count; k += kLanes) {
      T next[kLanes];
      for (std::size_t i = 0; i < kLanes; ++i)
        next[i] = sum[columns[k + i] & mask] + static_cast<T>(slope * values[k + i]);
      for (std::size_t i = 0; i < kLanes; ++i) {
        const std::size_t at = columns[k + i] & mask;
        sum[at] = next[i];
        mark[at / kCell] = 1;
      }
    }
    for (; k < count; ++k) {
      const std::size_t at = columns[k] & mask;
      sum[at] += static_cast<T>(slope * values[k]);
      mark[at / kCell] = 1;
    }
  }

  // Write what is not zero in ascending order, and be zero again.
  std::size_t drain(std::uint64_t base, int bits, std::uint32_t* indices, T* values) {
    std::size_t n = 0;
    const std::size_t cells = (std::size_t{1} << bits) / kCell;
    for (std::size_t c = 0; c < cells; c += 8) {
      std::uint64_t eight;
      std::memcpy(&eight, marks.data() + c, 8);
      if (!eight) continue;
      std::memset(marks.data() + c, 0, 8);
      for (; eight; eight &= eight - 1) {  // a mark is one bit of its byte
        const std::size_t at =
            (c + static_cast<std::size_t>(__builtin_ctzll(eight)) / 8) * kCell;
        T* const sum = sums.data() + at;
        for (unsigned some = nonzero(sum); some; some &= some - 1, ++n) {
          const std::size_t i = static_cast<std::size_t>(__builtin_ctz(some));
          indices[n] = static_cast<std::uint32_t>(base + at + i);
          values[n] = sum[i];
        }
        std::memset(sum, 0, kCell * sizeof(T));
      }
    }
    return n;
  }
};

// w.x over some entries of a row, w as it is due.
template <Lazy lazy, class T>
double product(const Model<T>& m, std::size_t now, const std::uint32_t* columns,
               const T* values, std::size_t count) {
  double sums[4] = {};
  std::size_t k = 0;
  for (; k + kAhead + 4 <= count; k += 4) {
    for (std::size_t i = 0; i < 4; ++i) __builtin_prefetch(m.weights + columns[k + kAhead + i]);
    for (std::size_t i = 0; i < 4; ++i)
      sums[i] += values[k + i] * due<lazy>(m, now, columns[k + i]);
  }
  for (; k + 4 <= count; k += 4)
    for (std::size_t i = 0; i < 4; ++i)
      sums[i] += values[k + i] * due<lazy>(m, now, columns[k + i]);
  for (; k < count; ++k) sums[0] += values[k] * due<lazy>(m, now, columns[k]);
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

template <class T>
struct Scratch {
  Sums<T> sums;
  std::vector<Cursor<T>> cursors;
  std::vector<double> slopes;  // of the rows: first their margins
};

template <class T>
Scratch<T>& scratch() {
  static thread_local Scratch<T> kept;
  return kept;
}

// Cursors at the beginning of the rows that `wanted(i)`; returns their entries.
template <class T, class Wanted>
std::size_t start(std::vector<Cursor<T>>& cursors, const Rows<T>& rows,
                  const std::int64_t* chosen, std::size_t count, Wanted wanted) {
  cursors.clear();
  std::size_t nnz = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t from = rows.indptr[chosen[i]], to = rows.indptr[chosen[i] + 1];
    if (from == to || !wanted(i)) continue;
    cursors.push_back({rows.indices + from, rows.indices + to, rows.values + from, i});
    nnz += static_cast<std::size_t>(to - from);
  }
  return nnz;
}

}  // namespace

template <class T>
std::size_t combine(const Rows<T>& rows, const std::int64_t* chosen, const double* slopes,
                    std::size_t count, std::size_t features, std::uint32_t* indices,
                    T* values) {
  Scratch<T>& s = scratch<T>();
  const auto counts = [&](std::size_t i) { return slopes[i] != 0.0; };
  const std::size_t nnz = start(s.cursors, rows, chosen, count, counts);
  const int bits = range_bits(features, s.cursors.size(), nnz);
  s.sums.fit(bits);
  Sums<T>& sums = s.sums;
  const std::uint32_t mask = (std::uint32_t{1} << bits) - 1;
  std::size_t written = 0;
  by_ranges(
      s.cursors, bits,
      [&](std::size_t row, const std::uint32_t* columns, const T* x, std::size_t n) {
        sums.add(columns, x, n, slopes[row], mask);
      },
      [&](std::uint64_t base) {
        written += sums.drain(base, bits, indices + written, values + written);
      });
  return written;
}

// scale * w.x + b comes later; this is w.x of the chosen rows, w as it is due.
template <Lazy lazy, class T>
void products(const Rows<T>& rows, const std::int64_t* chosen, std::size_t count,
              const Model<T>& model, double* out) {
  const std::size_t now = model.now();
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t from = rows.indptr[chosen[i]];
    out[i] = product<lazy>(model, now, rows.indices + from, rows.values + from,
                           rows.size(chosen[i]));
  }
}

template <class T>
Total gradient(const Rows<T>& rows, const std::int64_t* chosen, std::size_t count, Loss loss,
               double share, const Model<T>& model, std::uint32_t* indices, T* values) {
  Scratch<T>& s = scratch<T>();
  s.slopes.assign(count, 0.0);
  double* const slopes = s.slopes.data();
  with_lazy(model, [&](auto lazy) {
    products<decltype(lazy)::value>(rows, chosen, count, model, slopes);
  });
  Total total{0, 0.0, 0.0};
  for (std::size_t i = 0; i < count; ++i) {
    const double margin = model.scale() * slopes[i] + model.intercept();
    const double weight = rows.weight(chosen[i]);
    const Slope found = slope(loss, rows.labels[chosen[i]], margin);
    slopes[i] = share * weight * found.derivative;
    total.slope += slopes[i];
    total.loss += weight * found.value;
  }
  total.nnz = combine(rows, chosen, slopes, count, model.features, indices, values);
  return total;
}

template <class T>
void margins(const Rows<T>& rows, std::size_t first, std::size_t last, const T* weights,
             double* out) {
  for (std::size_t row = first; row < last; ++row) {
    double sums[4] = {};
    const std::int64_t end = rows.indptr[row + 1];
    std::int64_t k = rows.indptr[row];
    for (; k + 4 <= end; k += 4)
      for (int lane = 0; lane < 4; ++lane)
        sums[lane] += static_cast<double>(rows.values[k + lane]) *
                      static_cast<double>(weights[rows.indices[k + lane]]);
    for (; k < end; ++k)
      sums[0] +=
          static_cast<double>(rows.values[k]) * static_cast<double>(weights[rows.indices[k]]);
    out[row - first] = (sums[0] + sums[2]) + (sums[1] + sums[3]);
  }
}

template Total gradient(const Rows<float>&, const std::int64_t*, std::size_t, Loss, double,
                        const Model<float>&, std::uint32_t*, float*);
template Total gradient(const Rows<double>&, const std::int64_t*, std::size_t, Loss, double,
                        const Model<double>&, std::uint32_t*, double*);
template std::size_t combine(const Rows<double>&, const std::int64_t*, const double*,
                             std::size_t, std::size_t, std::uint32_t*, double*);
template void margins(const Rows<float>&, std::size_t, std::size_t, const float*, double*);
template void margins(const Rows<double>&, std::size_t, std::size_t, const double*, double*);

}  // namespace sparcml::linear
