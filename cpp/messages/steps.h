// Steps of an optimizer between allreduces.
#pragma once

#include "messages/vector.h"

namespace sparcml::messages {

// Vectors that a rank computes one after the other, each from the sums of those before.
template <class T>
class Steps {
 public:
  virtual ~Steps() = default;

  // Returns the vector of the current step, which is computed in the first call; nullptr if
  // there are no more steps.
  virtual const Vector<T>* vector() = 0;

  // Applies the sum over all ranks, and goes to the next step.
  virtual void apply(const Vector<T>& sum) = 0;
};

}  // namespace sparcml::messages
