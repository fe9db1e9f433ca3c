#include "kernels/moments/moments.h"

namespace sparcml {

Moments moments(const float* values, std::size_t n) { return SPARCML_PICK(moments)(values, n); }

}  // namespace sparcml
