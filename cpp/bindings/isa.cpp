#include "kernels/isa.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/arrays.h"

void register_isa(nb::module_& m) {
  m.def(
      "isa", [] { return std::string(sparcml::name(sparcml::active_isa())); },
      "Return the active instruction set.");
  m.def(
      "isas",
      [] {
        std::vector<std::string> names;
        for (sparcml::Isa isa : sparcml::available_isas()) names.push_back(sparcml::name(isa));
        return names;
      },
      "Return the instruction sets that this processor supports, best first.");
  m.def("use_isa", &sparcml::use_isa, "name"_a, "Run the kernels on this instruction set");
}
