// The instruction set and the threads of the kernels.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/arrays.h"
#include "bindings/shared.h"
#include "kernels/isa.h"

static void register_isa(nb::module_& m) {
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

static void register_threads(nb::module_& m) {
  m.def("threads", &sparcml::threads, "Return the number of threads that a kernel may use.");
  m.def(
      "set_threads",
      [](std::size_t count) {
        require(count >= 1, "set_threads: count must be at least 1");
        sparcml::set_threads(count);
      },
      "count"_a, "Let kernels use this many threads; results do not depend on it.");
  m.def("usable_processors", &sparcml::usable_processors,
        "Return the number of processors that this process may use.");
  static constexpr SharedFunctions shared = {sparcml::active_isa, sparcml::threads,
                                             sparcml::run_parts, &sparcml::ascending_prefix};
  m.attr("_shared") = nb::capsule(&shared, SharedFunctions::name);
}

void register_processor(nb::module_& m) {
  register_isa(m);
  register_threads(m);
}
