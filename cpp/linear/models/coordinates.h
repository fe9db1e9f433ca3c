// Coordinate descent on the columns of a matrix, given the margins of all rows.
//
// The step of a coordinate minimizes a quadratic upper bound of the objective within a trust
// radius that grows and shrinks with the steps (Genkin, Lewis, Madigan: Large-Scale Bayesian
// Logistic Regression, 2007). It needs no line search, and the objective never grows.
//
// If P ranks change the margins at the same time, each rank counts its own change P times. By
// convexity f(z + sum of d_k) <= 1/P sum of f(z + P d_k), so their steps still reduce the
// objective.
#pragma once

#include "linear/models/loss.h"
#include "linear/models/rows.h"

namespace sparcml::linear {

// The objective, common to all coordinates.
struct ScdObjective {
  Loss loss;
  double l1, l2;
  double share;           // weight of a row in the objective: 1 / rows
  double ranks;           // P
  const double* labels;   // of all rows
  const double* weights;  // null: all ones
};

// Makes one step per chosen column, in order. Columns are rows of the transposed matrix.
// `margin_changes` receives the change of each margin, which is then not in `margins`; if it is
// null, `margins` is updated, and there must be one rank. `changes` receives the change of each
// chosen coordinate.
void scd_steps(const Rows<double>& columns, const std::int64_t* chosen, std::size_t count,
               const ScdObjective& objective, double* coordinates, double* trust_radius,
               double* margins, double* margin_changes, double* changes);

// Moves the changes of the margins that `scd_steps` has made out of `margin_changes`, which is
// zero afterwards: writes the rows of all columns that have changed, in ascending order, and
// returns their number, at most the entries of the chosen columns and `rows`.
std::size_t take_margin_changes(const Rows<double>& columns, const std::int64_t* chosen,
                                std::size_t count, const double* changes, std::size_t rows,
                                double* margin_changes, std::uint32_t* indices, double* values);

// Updates the intercept bias[0] within its trust radius bias[1], and all margins.
void intercept_step(const ScdObjective& objective, double* margins, std::size_t rows,
                    double* bias);

}  // namespace sparcml::linear
