#include "linear/models/steps.h"

#include <vector>

#include "kernels/threads/pool.h"
#include "linear/models/fetch.h"

namespace sparcml::linear {
namespace {

// Prefetches the weights of the next row while this row is processed; fetched all at once, they
// would wait for each other.
template <Lazy lazy, class T>
struct Ahead {
  const Model<T>& model;
  const std::uint32_t *column, *end;

  void fetch(std::ptrdiff_t count) {
    const std::uint32_t* const stop = end - column < count ? end : column + count;
    for (; column < stop; ++column) __builtin_prefetch(place<lazy>(model, *column), 1);
  }
};

template <Lazy lazy, class T>
Ahead<lazy, T> ahead(const Rows<T>& rows, const std::int64_t* row, const Model<T>& model) {
  if (!row) return {model, nullptr, nullptr};
  return {model, rows.indices + rows.indptr[*row], rows.indices + rows.indptr[*row + 1]};
}

template <Lazy lazy, class T>
double margin(const Rows<T>& rows, std::int64_t row, const Model<T>& m, Ahead<lazy, T>& next) {
  double sums[4] = {};
  const std::size_t now = m.now();
  const std::int64_t end = rows.indptr[row + 1];
  std::int64_t k = rows.indptr[row];
  for (; k + 4 <= end; k += 4) {
    next.fetch(2);  // the other half follows when weights are written
    for (int lane = 0; lane < 4; ++lane)
      sums[lane] += rows.values[k + lane] * due<lazy>(m, now, rows.indices[k + lane]);
  }
  for (; k < end; ++k) sums[0] += rows.values[k] * due<lazy>(m, now, rows.indices[k]);
  return m.scale() * ((sums[0] + sums[2]) + (sums[1] + sums[3])) + m.intercept();
}

// A batch of one row needs no sums by column.
template <Lazy lazy, class T>
double step_on(const Rows<T>& rows, std::int64_t row, double rate, Loss loss, double intercept,
               const Model<T>& model, Ahead<lazy, T> next) {
  const double z = margin<lazy>(rows, row, model, next), weight = rows.weight(row);
  const Slope found = linear::slope(loss, rows.labels[row], z);
  const double gradient = weight * found.derivative;
  const Step<lazy, T> step(model, rate);
  const T slope = static_cast<T>(gradient);
  if (gradient != 0.0)
    for (std::int64_t k = rows.indptr[row]; k < rows.indptr[row + 1]; ++k) {
      next.fetch(1);
      step.move(rows.indices[k], slope * rows.values[k]);
    }
  next.fetch(next.end - next.column);
  if (intercept != 0.0) step.move_intercept(gradient, intercept);
  return weight * found.value;
}

// Moves weights, each by itself, so that any thread may do it.
template <Lazy lazy, class T>
void move_all(const Step<lazy, T>& step, std::size_t count, const std::uint32_t* indices,
              const T* values) {
  const std::size_t parts = count < (1 << 14) ? 1 : threads();
  for_parts(parts, [&](std::size_t part) {
    const std::size_t end = part_begin(count, parts, part + 1);
    for (std::size_t k = part_begin(count, parts, part); k < end; ++k)
      step.move(indices ? indices[k] : k, values[k]);
  });
}

template <Lazy lazy, class T>
double run_all(const Rows<T>& rows, const std::int64_t* order, const std::int64_t* starts,
               const double* rates, std::size_t steps, Loss loss, double intercept,
               const Model<T>& model, double sum) {
  std::vector<double> slopes;
  const std::int64_t end = starts[steps];
  for (std::size_t i = 0; i < steps; ++i) {
    const std::int64_t from = starts[i];
    const std::size_t count = static_cast<std::size_t>(starts[i + 1] - from);
    if (count == 1) {
      if (from + 2 < end) fetch_row(rows, order[from + 2]);
      const auto next = ahead<lazy>(rows, from + 1 < end ? order + from + 1 : nullptr, model);
      sum += step_on<lazy>(rows, order[from], rates[i], loss, intercept, model, next);
      continue;
    }
    slopes.resize(count);
    const Total found = linear::slopes(rows, order + from, count, loss,
                                       count ? 1.0 / count : 0.0, model, slopes.data());
    const Step<lazy, T> step(model, rates[i]);
    combine_each<T>(rows, order + from, slopes.data(), count, model.features,
                    [&](const std::uint32_t* columns, const T* values, std::size_t nnz) {
                      for (std::size_t k = 0; k < nnz; ++k) step.move(columns[k], values[k]);
                    });
    if (intercept != 0.0) step.move_intercept(found.slope, intercept);
    sum += found.loss;
  }
  return sum;
}

}  // namespace

template <class T>
void apply_gradient(const Model<T>& model, double rate, double intercept,
                    const std::uint32_t* indices, const T* values, std::size_t count) {
  with_lazy(model, [&](auto lazy) {
    const Step<decltype(lazy)::value, T> step(model, rate);
    const bool last = count && (indices ? indices[count - 1] : count - 1) == model.features;
    const std::size_t n = count - last;
    move_all(step, n, indices, values);
    step.move_intercept(last ? static_cast<double>(values[n]) : 0.0, intercept);
  });
}

template <class T>
double sgd_steps(const Rows<T>& rows, const std::int64_t* order, const std::int64_t* starts,
                 const double* rates, std::size_t steps, Loss loss, double intercept,
                 const Model<T>& model, double losses) {
  with_lazy(model, [&](auto lazy) {
    losses = run_all<decltype(lazy)::value>(rows, order, starts, rates, steps, loss, intercept,
                                            model, losses);
  });
  return losses;
}

template <class T>
void flush(const Model<T>& model) {
  with_lazy(model, [&](auto lazy) { settle_all<decltype(lazy)::value>(model); });
}

#define SPARCML_STEPS(T)                                                               \
  template void apply_gradient(const Model<T>&, double, double, const std::uint32_t*,  \
                               const T*, std::size_t);                                 \
  template double sgd_steps(const Rows<T>&, const std::int64_t*, const std::int64_t*,  \
                            const double*, std::size_t, Loss, double, const Model<T>&, \
                            double);                                                   \
  template void flush(const Model<T>&);
SPARCML_STEPS(float)
SPARCML_STEPS(double)

}  // namespace sparcml::linear
