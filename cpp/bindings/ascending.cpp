#include "kernels/ascending/ascending.h"

#include "bindings/arrays.h"

void register_ascending(nb::module_& m) {
  m.def(
      "ascending_prefix",
      [](In<std::uint32_t> indices, std::uint32_t blocks) {
        nb::gil_scoped_release nogil;
        return sparcml::ascending_prefix(indices.data(), indices.size(), blocks);
      },
      "indices"_a.noconvert(), "blocks"_a,
      "Return the length of the longest prefix that ascends strictly and is below blocks.");
}
