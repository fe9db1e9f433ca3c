#include "bindings/arrays.h"
#include "kernels/threads/pool.h"

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
}
