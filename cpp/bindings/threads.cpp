#include "bindings/arrays.h"
#include "bindings/shared.h"

void register_threads(nb::module_& m) {
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
                                             sparcml::run_parts, sparcml::ascending_prefix};
  m.attr("_shared") = nb::capsule(&shared, SharedFunctions::name);
}
