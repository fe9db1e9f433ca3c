#include "kernels/linear/gradient.h"

#include "kernels/linear/ranges.h"

namespace sparcml::linear {
namespace {

// Sums by column of one range; all zero between ranges and calls.
template <class T>
struct Sums {
  std::vector<T> sums;
  std::vector<std::uint64_t> words, groups;  // a bit a column; a bit a word

  void fit(int bits) {
    const std::size_t range = std::size_t{1} << bits;
    if (sums.size() >= range) return;
    sums.resize(range);
    words.resize(range / 64);
    groups.resize(range / 4096);
  }

  void add(std::size_t at, T value) {
    sums[at] += value;
    words[at >> 6] |= std::uint64_t{1} << (at & 63);
    groups[at >> 12] |= std::uint64_t{1} << (at >> 6 & 63);
  }

  // Write what there is in ascending order, and be zero again.
  std::size_t drain(std::uint64_t base, int bits, std::uint32_t* indices, T* values) {
    std::size_t n = 0;
    for (std::size_t g = 0; g < std::size_t{1} << bits >> 12; ++g) {
      for (std::uint64_t group = groups[g]; group; group &= group - 1) {
        const std::size_t w = g * 64 + static_cast<std::size_t>(__builtin_ctzll(group));
        for (std::uint64_t word = words[w]; word; word &= word - 1) {
          const std::size_t at = w * 64 + static_cast<std::size_t>(__builtin_ctzll(word));
          indices[n] = static_cast<std::uint32_t>(base + at);
          values[n++] = sums[at];
          sums[at] = 0;
        }
        words[w] = 0;
      }
      groups[g] = 0;
    }
    return n;
  }
};

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
      [&](std::size_t row, std::uint32_t column, T x) {
        sums.add(column & mask, static_cast<T>(slopes[row] * x));
      },
      [&](std::uint64_t base) {
        written += sums.drain(base, bits, indices + written, values + written);
      });
  return written;
}

template <class T>
Total gradient(const Rows<T>& rows, const std::int64_t* chosen, std::size_t count, Loss loss,
               double share, const Model<T>& model, std::uint32_t* indices, T* values) {
  Scratch<T>& s = scratch<T>();
  s.slopes.assign(count, 0.0);
  double* slopes = s.slopes.data();
  const std::size_t nnz =
      start(s.cursors, rows, chosen, count, [](std::size_t) { return true; });
  const int bits = range_bits(model.features, s.cursors.size(), nnz);
  with_lazy(model, [&](auto lazy) {
    const std::size_t now = model.now();
    by_ranges(
        s.cursors, bits,
        [&](std::size_t row, std::uint32_t column, T x) {
          slopes[row] += x * due<decltype(lazy)::value>(model, now, column);
        },
        [](std::uint64_t) {});
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
