#include "linear/models/coordinates.h"

#include <algorithm>
#include <vector>

#include "linear/models/model.h"

namespace sparcml::linear {
namespace {

// The derivative of the loss by a coordinate, and an upper bound of the second one nearby.
struct Bend {
  double slope = 0.0, curve = 0.0;

  void add(const ScdObjective& objective, std::size_t row, double margin, double x,
           double reach) {
    const double weight = objective.weights ? objective.weights[row] : 1.0;
    const double label = objective.labels[row];
    slope += weight * x * derivative(objective.loss, label, margin);
    curve += weight * x * x * curvature(objective.loss, label, margin, std::fabs(x) * reach);
  }
};

// Returns the step from w within the trust_radius radius, which it updates.
double step(const Bend& bend, const ScdObjective& objective, double l1, double l2, double w,
            double& trust_radius) {
  const double slope = objective.share * bend.slope + l2 * w;
  const double curve = objective.share * objective.ranks * bend.curve + l2;
  double by = l1 > 0 ? -w : 0.0;  // if the loss is flat here, the penalty decides
  if (curve > 0) by = soft(curve * w - slope, l1) / curve - w;
  by = std::clamp(by, -trust_radius, trust_radius);
  trust_radius = std::max(2.0 * std::fabs(by), 0.5 * trust_radius);
  return by;
}

// Columns are chosen at random, so nothing of the next ones is in the caches.
struct Ahead {
  const Rows<double>& columns;
  const std::int64_t* chosen;
  std::size_t count;
  const ScdObjective& objective;
  const double *coordinates, *trust_radius, *margins, *margin_changes;

  void fetch(std::size_t c) const {
    if (c + 12 < count) {
      const std::int64_t j = chosen[c + 12];
      __builtin_prefetch(columns.indptr + j);
      __builtin_prefetch(coordinates + j, 1);
      __builtin_prefetch(trust_radius + j, 1);
    }
    if (c + 8 < count) {
      const std::int64_t from = columns.indptr[chosen[c + 8]];
      __builtin_prefetch(columns.indices + from);
      __builtin_prefetch(columns.values + from);
    }
    if (c + 4 >= count) return;
    const std::int64_t from = columns.indptr[chosen[c + 4]];
    const std::int64_t to = std::min(columns.indptr[chosen[c + 4] + 1], from + kFetched);
    for (std::int64_t k = from; k < to; ++k) {
      const std::size_t row = columns.indices[k];
      __builtin_prefetch(margins + row);
      __builtin_prefetch(objective.labels + row);
      if (margin_changes) __builtin_prefetch(margin_changes + row, 1);
    }
  }

  static constexpr std::int64_t kFetched = 16;  // entries of a column
};

// A set of rows in two levels: bits of rows, and bits of their words.
struct RowSet {
  std::vector<std::uint64_t> words, groups;

  explicit RowSet(std::size_t rows) : words(rows / 64 + 1), groups(words.size() / 64 + 1) {}

  void add(std::size_t row) {
    words[row / 64] |= std::uint64_t{1} << row % 64;
    groups[row / 4096] |= std::uint64_t{1} << row / 64 % 64;
  }

  // Calls f(row) for all rows in ascending order, and empties the set.
  template <class F>
  void drain(F f) {
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (std::uint64_t group = groups[g]; group; group &= group - 1) {
        const std::size_t w = 64 * g + __builtin_ctzll(group);
        for (std::uint64_t word = words[w]; word; word &= word - 1)
          f(64 * w + __builtin_ctzll(word));
        words[w] = 0;
      }
      groups[g] = 0;
    }
  }
};

}  // namespace

void scd_steps(const Rows<double>& columns, const std::int64_t* chosen, std::size_t count,
               const ScdObjective& objective, double* coordinates, double* trust_radius,
               double* margins, double* margin_changes, double* changes) {
  const Ahead ahead{columns,     chosen,       count,   objective,
                    coordinates, trust_radius, margins, margin_changes};
  for (std::size_t c = 0; c < count; ++c) {
    ahead.fetch(c);
    const std::int64_t j = chosen[c];
    const std::int64_t from = columns.indptr[j], to = columns.indptr[j + 1];
    const double reach = objective.ranks * trust_radius[j];
    Bend bend;
    for (std::int64_t k = from; k < to; ++k) {
      const std::size_t row = columns.indices[k];
      const double own = margin_changes ? objective.ranks * margin_changes[row] : 0.0;
      bend.add(objective, row, margins[row] + own, columns.values[k], reach);
    }
    const double by =
        step(bend, objective, objective.l1, objective.l2, coordinates[j], trust_radius[j]);
    changes[c] = by;
    if (by == 0.0) continue;
    coordinates[j] += by;
    double* target = margin_changes ? margin_changes : margins;
    for (std::int64_t k = from; k < to; ++k)
      target[columns.indices[k]] += by * columns.values[k];
  }
}

std::size_t take_margin_changes(const Rows<double>& columns, const std::int64_t* chosen,
                                std::size_t count, const double* changes, std::size_t rows,
                                double* margin_changes, std::uint32_t* indices,
                                double* values) {
  thread_local RowSet changed(0);
  if (changed.words.size() < rows / 64 + 1) changed = RowSet(rows);
  for (std::size_t c = 0; c < count; ++c) {
    if (changes[c] == 0.0) continue;
    for (std::int64_t k = columns.indptr[chosen[c]]; k < columns.indptr[chosen[c] + 1]; ++k)
      changed.add(columns.indices[k]);
  }
  std::size_t n = 0;
  changed.drain([&](std::size_t row) {
    indices[n] = static_cast<std::uint32_t>(row);
    values[n++] = margin_changes[row];
    margin_changes[row] = 0.0;
  });
  return n;
}

void intercept_step(const ScdObjective& objective, double* margins, std::size_t rows,
                    double* bias) {
  ScdObjective single_rank = objective;  // all ranks make the same step
  single_rank.ranks = 1.0;
  Bend bend;
  for (std::size_t row = 0; row < rows; ++row)
    bend.add(single_rank, row, margins[row], 1.0, bias[1]);
  const double by = step(bend, single_rank, 0.0, 0.0, bias[0], bias[1]);
  bias[0] += by;
  for (std::size_t row = 0; row < rows; ++row) margins[row] += by;
}

}  // namespace sparcml::linear
