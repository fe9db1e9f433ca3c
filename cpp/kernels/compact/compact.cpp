#include "kernels/compact/compact.h"

namespace sparcml {

template <class T>
std::size_t compact(Dense<T> dense, std::size_t limit, std::uint32_t* oi, T* ov) {
  return SPARCML_PICK(compact<T>)(dense, limit, oi, ov);
}

template <class T>
std::size_t count(Dense<T> dense) {
  return SPARCML_PICK(count<T>)(dense);
}

template <class T>
std::size_t squeeze(Dense<T> dense, std::size_t limit, std::uint8_t* plane, T* ov) {
  return SPARCML_PICK(squeeze<T>)(dense, limit, plane, ov);
}

template std::size_t compact(Dense<float>, std::size_t, std::uint32_t*, float*);
template std::size_t compact(Dense<double>, std::size_t, std::uint32_t*, double*);
template std::size_t count(Dense<float>);
template std::size_t count(Dense<double>);
template std::size_t squeeze(Dense<float>, std::size_t, std::uint8_t*, float*);
template std::size_t squeeze(Dense<double>, std::size_t, std::uint8_t*, double*);

}  // namespace sparcml
