#include "kernels/moments/generic.h"

namespace sparcml::scalar {

Moments moments(const float* values, std::size_t n) { return all_moments(values, n); }

}  // namespace sparcml::scalar
