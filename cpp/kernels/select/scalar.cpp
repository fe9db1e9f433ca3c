#include "kernels/select/generic.h"

namespace sparcml::scalar {

SPARCML_SELECT_DEFINE(float)
SPARCML_SELECT_DEFINE(double)

}  // namespace sparcml::scalar
