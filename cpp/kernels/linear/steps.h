// Steps of stochastic gradient descent.
#pragma once

#include "kernels/linear/gradient.h"

namespace sparcml::linear {

// One step along a gradient; null indices: it is dense. A last entry at `features` is the
// intercept's, whose rate is `intercept` times the others'; without one, 0. Throws
// std::invalid_argument if rate * l2 >= 1, before anything is written.
template <class T>
void apply(const Model<T>& model, double rate, double intercept, const std::uint32_t* indices,
           const T* values, std::size_t count);

// Step i is over the rows order[starts[i]] to order[starts[i + 1]], which alone make up the
// batch. Returns `losses` and those of all rows, each before its step.
template <class T>
double run(const Rows<T>& rows, const std::int64_t* order, const std::int64_t* starts,
           const double* rates, std::size_t steps, Loss loss, double intercept,
           const Model<T>& model, double losses);

// Weights as they are: scale 1, nothing due.
template <class T>
void settle(const Model<T>& model);

}  // namespace sparcml::linear
