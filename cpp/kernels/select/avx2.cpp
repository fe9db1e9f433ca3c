#include "kernels/select/generic.h"

namespace sparcml::avx2 {

SPARCML_SELECT_DEFINE(float)
SPARCML_SELECT_DEFINE(double)

}  // namespace sparcml::avx2
