#include "kernels/compact/compact.h"

namespace sparcml {

template <class T>
std::size_t compact(Dense<T> dense, std::size_t limit, std::uint32_t* oi, T* ov) {
  return SPARCML_PICK(compact<T>)(dense, limit, oi, ov);
}

template <class T>
std::size_t count_nonfill(Dense<T> dense) {
  return SPARCML_PICK(count_nonfill<T>)(dense);
}

template <class T>
std::size_t bitmap_compact(Dense<T> dense, std::size_t limit, std::uint8_t* bitmap, T* ov) {
  return SPARCML_PICK(bitmap_compact<T>)(dense, limit, bitmap, ov);
}

template std::size_t compact(Dense<float>, std::size_t, std::uint32_t*, float*);
template std::size_t compact(Dense<double>, std::size_t, std::uint32_t*, double*);
template std::size_t count_nonfill(Dense<float>);
template std::size_t count_nonfill(Dense<double>);
template std::size_t bitmap_compact(Dense<float>, std::size_t, std::uint8_t*, float*);
template std::size_t bitmap_compact(Dense<double>, std::size_t, std::uint8_t*, double*);

}  // namespace sparcml
