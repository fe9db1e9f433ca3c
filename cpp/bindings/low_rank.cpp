#include "kernels/low_rank/low_rank.h"

#include <nanobind/stl/optional.h>

#include <optional>

#include "bindings/arrays.h"

namespace {

template <class T>
using Matrix = nb::ndarray<const T, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using OutMatrix = nb::ndarray<T, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T>
void project_rows(Matrix<T> M, Matrix<T> Q, OutMatrix<T> P) {
  const std::size_t n = M.shape(0), m = M.shape(1), r = Q.shape(0);
  require(Q.shape(1) == m && P.shape(0) == r && P.shape(1) == n,
          "M must be n x m, Q r x m and P r x n");
  nb::gil_scoped_release nogil;
  sparcml::project_rows<T>(M.data(), n, m, Q.data(), r, P.data());
}

template <class T>
void project_columns(Matrix<T> M, Matrix<T> P, OutMatrix<T> Q) {
  const std::size_t n = M.shape(0), m = M.shape(1), r = P.shape(0);
  require(P.shape(1) == n && Q.shape(0) == r && Q.shape(1) == m,
          "M must be n x m, P r x n and Q r x m");
  nb::gil_scoped_release nogil;
  sparcml::project_columns<T>(M.data(), n, m, P.data(), r, Q.data());
}

template <class T>
bool project_corrected_rows(Matrix<T> residual, Matrix<T> gradient, T scale, OutMatrix<T> M,
                            Matrix<T> Q, OutMatrix<T> P) {
  const std::size_t n = M.shape(0), m = M.shape(1), r = Q.shape(0);
  require(r > 0 && Q.shape(1) == m && P.shape(0) == r && P.shape(1) == n,
          "M must be n x m, Q r x m and P r x n, with r > 0");
  require(residual.shape(0) == n && residual.shape(1) == m && gradient.shape(0) == n &&
              gradient.shape(1) == m,
          "residual, gradient and M must have the same shape");
  nb::gil_scoped_release nogil;
  return sparcml::project_corrected_rows<T>({residual.data(), gradient.data(), M.data(), scale},
                                            n, m, Q.data(), r, P.data());
}

template <class T>
void expand_factors(Matrix<T> P, Matrix<T> Q, OutMatrix<T> M,
                    std::optional<OutMatrix<T>> residual) {
  const std::size_t n = P.shape(1), m = Q.shape(1), r = P.shape(0);
  require(r > 0 && Q.shape(0) == r && M.shape(0) == n && M.shape(1) == m,
          "P must be r x n, Q r x m and M n x m, with r > 0");
  require(!residual || (residual->shape(0) == n && residual->shape(1) == m),
          "residual and M must have the same shape");
  nb::gil_scoped_release nogil;
  sparcml::expand_factors<T>(P.data(), Q.data(), n, m, r, M.data(),
                             residual ? residual->data() : nullptr);
}

template <class T>
void orthonormalize(OutMatrix<T> P) {
  nb::gil_scoped_release nogil;
  sparcml::orthonormalize<T>(P.data(), P.shape(1), P.shape(0));
}

template <class T>
void register_type(nb::module_& m) {
  m.def("project_rows", &project_rows<T>, "M"_a.noconvert(), "Q"_a.noconvert(),
        "P"_a.noconvert(), "Write M Q; factors have one row per column.");
  m.def("project_columns", &project_columns<T>, "M"_a.noconvert(), "P"_a.noconvert(),
        "Q"_a.noconvert(), "Write the product of the transpose of M and P.");
  m.def("expand_factors", &expand_factors<T>, "P"_a.noconvert(), "Q"_a.noconvert(),
        "M"_a.noconvert(), "residual"_a.none().noconvert() = nb::none(),
        "Write the product of P and the transpose of Q, and subtract it from the residual.");
  m.def("project_corrected_rows", &project_corrected_rows<T>, "residual"_a.noconvert(),
        "gradient"_a.noconvert(), "scale"_a, "M"_a.noconvert(), "Q"_a.noconvert(),
        "P"_a.noconvert(), "Write M = scale * residual + gradient and M Q; all finite");
  m.def("orthonormalize", &orthonormalize<T>, "P"_a.noconvert(),
        "Make the rows orthonormal, in place; dependent ones become zero.");
}

}  // namespace

void register_low_rank(nb::module_& m) {
  register_type<float>(m);
  register_type<double>(m);
}
