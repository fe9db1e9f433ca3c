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

template std::size_t compact(Dense<float>, std::size_t, std::uint32_t*, float*);
template std::size_t compact(Dense<double>, std::size_t, std::uint32_t*, double*);
template std::size_t count(Dense<float>);
template std::size_t count(Dense<double>);

}  // namespace sparcml
