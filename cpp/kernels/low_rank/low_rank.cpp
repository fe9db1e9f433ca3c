#include "kernels/low_rank/low_rank.h"

namespace sparcml {

template <class T>
void project_rows(const T* M, std::size_t n, std::size_t m, const T* Q, std::size_t r, T* P) {
  SPARCML_PICK(project_rows<T>)(M, n, m, Q, r, P);
}

template <class T>
void project_columns(const T* M, std::size_t n, std::size_t m, const T* P, std::size_t r,
                     T* Q) {
  SPARCML_PICK(project_columns<T>)(M, n, m, P, r, Q);
}

template <class T>
bool project_corrected_rows(Correction<T> correction, std::size_t n, std::size_t m, const T* Q,
                            std::size_t r, T* P) {
  return SPARCML_PICK(project_corrected_rows<T>)(correction, n, m, Q, r, P);
}

template <class T>
void expand_factors(const T* P, const T* Q, std::size_t n, std::size_t m, std::size_t r, T* M,
                    T* residual) {
  SPARCML_PICK(expand_factors<T>)(P, Q, n, m, r, M, residual);
}

template <class T>
void orthonormalize(T* P, std::size_t n, std::size_t r) {
  SPARCML_PICK(orthonormalize<T>)(P, n, r);
}

#define SPARCML_INSTANTIATE(T)                                                                \
  template void project_rows(const T*, std::size_t, std::size_t, const T*, std::size_t, T*);  \
  template void project_columns(const T*, std::size_t, std::size_t, const T*, std::size_t,    \
                                T*);                                                          \
  template bool project_corrected_rows(Correction<T>, std::size_t, std::size_t, const T*,     \
                                       std::size_t, T*);                                      \
  template void expand_factors(const T*, const T*, std::size_t, std::size_t, std::size_t, T*, \
                               T*);                                                           \
  template void orthonormalize(T*, std::size_t, std::size_t);

SPARCML_INSTANTIATE(float)
SPARCML_INSTANTIATE(double)

}  // namespace sparcml
