#include "kernels/expand/expand.h"

namespace sparcml {

template <class T>
const char* expand(Plane<T> plane, T fill, T* out, std::size_t size) {
  return SPARCML_PICK(expand<T>)(plane, fill, out, size);
}

template const char* expand(Plane<float>, float, float*, std::size_t);
template const char* expand(Plane<double>, double, double*, std::size_t);

}  // namespace sparcml
