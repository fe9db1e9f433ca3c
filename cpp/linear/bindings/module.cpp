#include <nanobind/nanobind.h>

#include "bindings/shared.h"

namespace nb = nanobind;

static const SharedFunctions* shared = nullptr;  // set before any other function may be called

namespace sparcml {

Isa active_isa() { return shared->active_isa(); }
std::size_t threads() { return shared->threads(); }
void run_parts(std::size_t parts, void (*call)(void*, std::size_t), void* context) {
  shared->run_parts(parts, call, context);
}
std::size_t ascending_prefix(const std::uint32_t* values, std::size_t count,
                             std::uint32_t limit) {
  return shared->ascending_prefix(values, count, limit);
}

}  // namespace sparcml

void register_column_index(nb::module_& m);
void register_scd(nb::module_& m);
void register_sgd(nb::module_& m);
void register_svmlight(nb::module_& m);

NB_MODULE(_core, m) {
  m.doc() = "The compiled inner loops of linear models.";
  const nb::object kernels = nb::module_::import_("sparcml.kernels._core");
  shared = static_cast<const SharedFunctions*>(
      nb::cast<nb::capsule>(kernels.attr("_shared")).data(SharedFunctions::name));
  register_column_index(m);
  register_scd(m);
  register_sgd(m);
  register_svmlight(m);
}
