// The largest magnitude, sum and sum of squares of float32 values in one pass. Sums are in
// double precision and in the order of norms.h. NaN is ignored.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa.h"

namespace sparcml {

struct Moments {
  float largest;
  double sum, squares;
  std::size_t count;  // of values that are not NaN
};

SPARCML_KERNEL(Moments, moments, const float* values, std::size_t n);

}  // namespace sparcml
