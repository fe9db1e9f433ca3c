#include <nanobind/nanobind.h>

namespace nb = nanobind;

void register_isa(nb::module_& m);
void register_dense(nb::module_& m);

NB_MODULE(_core, m) {
  m.doc() = "The compiled inner loops of sparcml.";
  register_isa(m);
  register_dense(m);
}
