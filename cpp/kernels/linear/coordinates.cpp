#include "kernels/linear/coordinates.h"

#include <algorithm>

#include "kernels/linear/model.h"

namespace sparcml::linear {
namespace {

// The derivative of the loss by a coordinate, and an upper bound of the second one nearby.
struct Bend {
  double slope = 0.0, curve = 0.0;

  void add(const ScdObjective& objective, std::size_t row, double margin, double x,
           double reach) {
    const double weight = objective.weights ? objective.weights[row] : 1.0;
    const double label = objective.labels[row];
    slope += weight * x * linear::slope(objective.loss, label, margin).derivative;
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

}  // namespace

void scd_steps(const Rows<double>& columns, const std::int64_t* chosen, std::size_t count,
               const ScdObjective& objective, double* coordinates, double* trust_radius,
               double* margins, double* margin_changes, double* changes) {
  for (std::size_t c = 0; c < count; ++c) {
    const std::int64_t j = chosen[c];
    const std::int64_t from = columns.indptr[j], to = columns.indptr[j + 1];
    const double reach = objective.ranks * trust_radius[j];
    Bend bend;
    for (std::int64_t k = from; k < to; ++k) {
      const std::size_t row = columns.indices[k];
      const double ahead = margin_changes ? objective.ranks * margin_changes[row] : 0.0;
      bend.add(objective, row, margins[row] + ahead, columns.values[k], reach);
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
