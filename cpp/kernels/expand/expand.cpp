#include "kernels/expand/expand.h"

namespace sparcml {

template <class T>
const char* bitmap_expand(Plane<T> plane, T fill, T* out, std::size_t size) {
  return SPARCML_PICK(bitmap_expand<T>)(plane, fill, out, size);
}

template const char* bitmap_expand(Plane<float>, float, float*, std::size_t);
template const char* bitmap_expand(Plane<double>, double, double*, std::size_t);

std::size_t bitmap_ones(const std::uint8_t* bits, std::size_t words) {
  return SPARCML_PICK(bitmap_ones)(bits, words);
}

}  // namespace sparcml
