#include "kernels/linear/coordinates.h"

#include <algorithm>

#include "kernels/linear/model.h"

namespace sparcml::linear {
namespace {

// The derivative of the loss by a coordinate, and a bound of the second one nearby.
struct Bend {
  double slope = 0.0, curve = 0.0;

  void add(const Descent& about, std::size_t row, double margin, double x, double reach) {
    const double weight = about.weights ? about.weights[row] : 1.0;
    const double label = about.labels[row];
    slope += weight * x * linear::slope(about.loss, label, margin).derivative;
    curve += weight * x * x * curvature(about.loss, label, margin, std::fabs(x) * reach);
  }
};

// How far to go from w, at most as far as it is trusted, which changes with it.
double step(const Bend& bend, const Descent& about, double l1, double l2, double w,
            double& trust) {
  const double slope = about.share * bend.slope + l2 * w;
  const double curve = about.share * about.parties * bend.curve + l2;
  double by = l1 > 0 ? -w : 0.0;  // a loss that is flat here leaves it to the penalty
  if (curve > 0) by = soft(curve * w - slope, l1) / curve - w;
  by = std::clamp(by, -trust, trust);
  trust = std::max(2.0 * std::fabs(by), 0.5 * trust);
  return by;
}

}  // namespace

void descend(const Rows<double>& columns, const std::int64_t* chosen, std::size_t count,
             const Descent& about, double* coordinates, double* trust, double* margins,
             double* moved, double* changes) {
  for (std::size_t c = 0; c < count; ++c) {
    const std::int64_t j = chosen[c];
    const std::int64_t from = columns.indptr[j], to = columns.indptr[j + 1];
    const double reach = about.parties * trust[j];
    Bend bend;
    for (std::int64_t k = from; k < to; ++k) {
      const std::size_t row = columns.indices[k];
      const double ahead = moved ? about.parties * moved[row] : 0.0;
      bend.add(about, row, margins[row] + ahead, columns.values[k], reach);
    }
    const double by = step(bend, about, about.l1, about.l2, coordinates[j], trust[j]);
    changes[c] = by;
    if (by == 0.0) continue;
    coordinates[j] += by;
    double* target = moved ? moved : margins;
    for (std::int64_t k = from; k < to; ++k)
      target[columns.indices[k]] += by * columns.values[k];
  }
}

void shift(const Descent& about, double* margins, std::size_t rows, double* bias) {
  Descent alone = about;  // all parties make the same step
  alone.parties = 1.0;
  Bend bend;
  for (std::size_t row = 0; row < rows; ++row) bend.add(alone, row, margins[row], 1.0, bias[1]);
  const double by = step(bend, alone, 0.0, 0.0, bias[0], bias[1]);
  bias[0] += by;
  for (std::size_t row = 0; row < rows; ++row) margins[row] += by;
}

}  // namespace sparcml::linear
