// Steps of stochastic gradient descent.
#pragma once

#include "linear/models/gradient.h"

namespace sparcml::linear {

// Updates the model with a gradient, which is dense if indices are null. A last entry at
// `features` is the intercept's, whose learning rate is `intercept` times the others'. Throws
// std::invalid_argument if rate * l2 >= 1, before anything is written.
template <class T>
void apply_gradient(const Model<T>& model, double rate, double intercept,
                    const std::uint32_t* indices, const T* values, std::size_t count);

// Makes one step per rate; the batch of step i is rows order[starts[i]] to order[starts[i +
// 1]]. Returns `losses` plus the losses of all rows, each before its step.
template <class T>
double sgd_steps(const Rows<T>& rows, const std::int64_t* order, const std::int64_t* starts,
                 const double* rates, std::size_t steps, Loss loss, double intercept,
                 const Model<T>& model, double losses);

// Applies everything pending to all weights; their scale is 1 afterwards.
template <class T>
void flush(const Model<T>& model);

}  // namespace sparcml::linear
