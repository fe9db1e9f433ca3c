// One source for all instruction sets, vectorised by the compiler.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/low_rank/low_rank.h"
#include "kernels/selection/selection.h"

namespace sparcml {
namespace {

constexpr std::size_t kLanes = 8;
constexpr std::size_t kRows = 256;      // added without an intermediate sum
constexpr std::size_t kColumns = 1024;  // of which four factors fit into the first-level cache
constexpr std::size_t kTile = 8;        // rows that use these columns of the factors together

template <class T>
T tree_of(const T* lane) {
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
         ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

// Calls f<R>(first) for groups of at most four columns, which fit into registers.
template <class F>
void for_columns(std::size_t r, F f) {
  std::size_t k = 0;
  for (; k + 4 <= r; k += 4) f.template operator()<4>(k);
  if (r - k == 3) f.template operator()<3>(k);
  if (r - k == 2) f.template operator()<2>(k);
  if (r - k == 1) f.template operator()<1>(k);
}

template <class T>
struct ProjectRows {
  const T* M;
  std::size_t n, m;
  const T* Q;
  T* P;
  const Correction<T>* correction = nullptr;  // made with the first columns
  bool* finite = nullptr;

  template <std::size_t R>
  void operator()(std::size_t k) const {
    std::fill_n(P + k * n, R * n, T{0});
    const bool corrects = correction != nullptr && k == 0;
    for (std::size_t top = 0; top < n; top += kTile) {
      const std::size_t bottom = std::min(n, top + kTile);
      for (std::size_t start = 0; start < m; start += kColumns) {
        const std::size_t width = std::min(kColumns, m - start);
        for (std::size_t i = top; i < bottom; ++i) {
          const std::size_t at = i * m + start;
          if (corrects)
            *finite &= std::isfinite(SPARCML_NAMESPACE::add_residual<T>(
                {correction->residual + at, correction->gradient + at, correction->out + at,
                 width, correction->scale}));
          add<R>(k, i, start, width);
        }
      }
    }
  }

  // Adds the products of a part of row i.
  template <std::size_t R>
  void add(std::size_t k, std::size_t i, std::size_t start, std::size_t width) const {
    const T *row = M + i * m + start, *q = Q + k * m + start;
    T lane[R][kLanes] = {};
    std::size_t j = 0;
    for (; j + kLanes <= width; j += kLanes)
      for (std::size_t c = 0; c < R; ++c)
        for (std::size_t l = 0; l < kLanes; ++l) lane[c][l] += row[j + l] * q[c * m + j + l];
    for (std::size_t l = 0; j < width; ++j, ++l)
      for (std::size_t c = 0; c < R; ++c) lane[c][l] += row[j] * q[c * m + j];
    for (std::size_t c = 0; c < R; ++c) P[(k + c) * n + i] += tree_of(lane[c]);
  }
};

template <class T>
struct ProjectColumns {
  const T* M;
  std::size_t n, m;
  const T* P;
  T* Q;

  template <std::size_t R>
  void operator()(std::size_t k) const {
    T part[R][kColumns];
    for (std::size_t start = 0; start < m; start += kColumns) {
      const std::size_t width = std::min(kColumns, m - start);
      for (std::size_t c = 0; c < R; ++c) std::fill_n(Q + (k + c) * m + start, width, T{0});
      for (std::size_t top = 0; top < n; top += kRows) {
        const std::size_t bottom = std::min(n, top + kRows);
        for (std::size_t c = 0; c < R; ++c) std::fill_n(part[c], width, T{0});
        for (std::size_t i = top; i < bottom; ++i) {
          const T* row = M + i * m + start;
          T p[R];
          for (std::size_t c = 0; c < R; ++c) p[c] = P[(k + c) * n + i];
          for (std::size_t j = 0; j < width; ++j)
            for (std::size_t c = 0; c < R; ++c) part[c][j] += p[c] * row[j];
        }
        for (std::size_t c = 0; c < R; ++c) {
          T* q = Q + (k + c) * m + start;
          for (std::size_t j = 0; j < width; ++j) q[j] += part[c][j];
        }
      }
    }
  }
};

// Copies a row that is not read soon: past the caches, if it starts at a vector.
template <class T>
void write_row(const T* from, std::size_t n, T* to) {
  std::size_t j = 0;
#ifdef SPARCML_AVX2
  constexpr std::size_t kWide = 32 / sizeof(T);
  if (reinterpret_cast<std::uintptr_t>(to) % 32 == 0)
    for (; j + kWide <= n; j += kWide)
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to + j),
                          _mm256_load_si256(reinterpret_cast<const __m256i*>(from + j)));
#endif
  std::copy(from + j, from + n, to + j);
}

template <class T>
struct ExpandFactors {
  const T *P, *Q;
  std::size_t n, m, r;
  T* M;
  T* residual;  // or nullptr

  template <std::size_t R>
  void operator()(std::size_t k) const {
    alignas(32) T part[kColumns];
    for (std::size_t top = 0; top < n; top += kTile) {
      const std::size_t bottom = std::min(n, top + kTile);
      for (std::size_t start = 0; start < m; start += kColumns) {
        const std::size_t width = std::min(kColumns, m - start);
        for (std::size_t i = top; i < bottom; ++i) expand<R>(k, i, start, width, part);
      }
    }
  }

  // Computes a part of row i; after the last columns it is subtracted from the residual.
  template <std::size_t R>
  void expand(std::size_t k, std::size_t i, std::size_t start, std::size_t width,
              T* __restrict part) const {
    T* row = M + i * m + start;
    const T* q = Q + k * m + start;
    T p[R];
    for (std::size_t c = 0; c < R; ++c) p[c] = P[(k + c) * n + i];
    if (k == 0)
      for (std::size_t j = 0; j < width; ++j) part[j] = sum<R>(p[0] * q[j], p, q, j);
    else
      for (std::size_t j = 0; j < width; ++j) part[j] = sum<R>(row[j] + p[0] * q[j], p, q, j);
    if (k + R < r) {
      std::copy(part, part + width, row);
      return;
    }
    if (residual != nullptr) {
      T* rest = residual + i * m + start;
      for (std::size_t j = 0; j < width; ++j) rest[j] = rest[j] - part[j];
    }
    write_row(part, width, row);
  }

  template <std::size_t R>
  T sum(T all, const T* p, const T* q, std::size_t j) const {
    for (std::size_t c = 1; c < R; ++c) all += p[c] * q[c * m + j];
    return all;
  }
};

double dot(const double* a, const double* b, std::size_t n) {
  double lane[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (std::size_t l = 0; l < kLanes; ++l) lane[l] += a[i + l] * b[i + l];
  for (std::size_t l = 0; i < n; ++i, ++l) lane[l] += a[i] * b[i];
  return tree_of(lane);
}

void scale_by(double* a, std::size_t n, double divisor) {
  for (std::size_t i = 0; i < n; ++i) a[i] /= divisor;
}

// Divides a column by its largest magnitude, against overflow. NaN stays.
void scale_to_one(double* column, std::size_t n) {
  double largest = 0;
  for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(column[i]));
  if (largest > 0) scale_by(column, n, largest);
}

}  // namespace

namespace SPARCML_NAMESPACE {

template <class T>
void project_rows(const T* M, std::size_t n, std::size_t m, const T* Q, std::size_t r, T* P) {
  for_columns(r, ProjectRows<T>{M, n, m, Q, P});
}

template <class T>
bool project_corrected_rows(Correction<T> correction, std::size_t n, std::size_t m, const T* Q,
                            std::size_t r, T* P) {
  bool finite = true;
  for_columns(r, ProjectRows<T>{correction.out, n, m, Q, P, &correction, &finite});
  return finite;
}

template <class T>
void project_columns(const T* M, std::size_t n, std::size_t m, const T* P, std::size_t r,
                     T* Q) {
  for_columns(r, ProjectColumns<T>{M, n, m, P, Q});
}

template <class T>
void expand_factors(const T* P, const T* Q, std::size_t n, std::size_t m, std::size_t r, T* M,
                    T* residual) {
  for_columns(r, ExpandFactors<T>{P, Q, n, m, r, M, residual});
#ifdef SPARCML_AVX2
  _mm_sfence();
#endif
}

template <class T>
void orthonormalize(T* P, std::size_t n, std::size_t r) {
  // What is left of a dependent column are the rounding errors of its values.
  const double dependent = 4 * static_cast<double>(std::numeric_limits<T>::epsilon());
  std::vector<double> all(n * r);
  for (std::size_t i = 0; i < n * r; ++i) all[i] = P[i];
  for (std::size_t k = 0; k < r; ++k) {
    double* column = all.data() + k * n;
    scale_to_one(column, n);
    const double before = std::sqrt(dot(column, column, n));
    for (int twice = 0; twice < 2; ++twice)
      for (std::size_t c = 0; c < k; ++c) {
        const double* other = all.data() + c * n;
        const double along = dot(other, column, n);
        for (std::size_t i = 0; i < n; ++i) column[i] -= along * other[i];
      }
    const double after = std::sqrt(dot(column, column, n));
    if (after <= dependent * before)  // false for NaN, which propagates
      std::fill_n(column, n, 0.0);
    else
      scale_by(column, n, after);
  }
  for (std::size_t i = 0; i < n * r; ++i) P[i] = static_cast<T>(all[i]);
}

SPARCML_FOR_REALS(project_rows);
SPARCML_FOR_REALS(project_corrected_rows);
SPARCML_FOR_REALS(project_columns);
SPARCML_FOR_REALS(expand_factors);
SPARCML_FOR_REALS(orthonormalize);

}  // namespace SPARCML_NAMESPACE
}  // namespace sparcml
