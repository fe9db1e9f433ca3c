// Coordinate descent on the columns of a matrix, with the margins of all rows at hand.
//
// A coordinate's step makes a quadratic small that is nowhere below the objective, within a
// region of trust that grows and shrinks with the steps (Genkin, Lewis, Madigan: Large-Scale
// Bayesian Logistic Regression, 2007): no line search, and the objective never grows.
//
// Where others change the margins at the same time, each of P parties counts its own change P
// times. By convexity f(z + sum of d_k) <= 1/P sum of f(z + P d_k), so all together still make
// the objective smaller.
#pragma once

#include "kernels/linear/loss.h"
#include "kernels/linear/rows.h"

namespace sparcml::linear {

// What all coordinates have in common.
struct Descent {
  Loss loss;
  double l1, l2;
  double share;           // of a row's loss in the objective: 1 / rows
  double parties;         // P
  const double* labels;   // of all rows
  const double* weights;  // null: all ones
};

// Steps on the chosen columns, one after the other. Columns are rows of the transposed matrix.
// `moved` has how much each margin has changed by it, and is what the margins lack; if null,
// margins are changed themselves, and there must be one party. `changes` gets how much each
// chosen coordinate's weight has changed.
void descend(const Rows<double>& columns, const std::int64_t* chosen, std::size_t count,
             const Descent& about, double* coordinates, double* trust, double* margins,
             double* moved, double* changes);

// The intercept's step, which shifts all margins; bias[0] is it, bias[1] its region of trust.
void shift(const Descent& about, double* margins, std::size_t rows, double* bias);

}  // namespace sparcml::linear
