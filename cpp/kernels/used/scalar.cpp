#include "kernels/used/generic.h"

namespace sparcml::scalar {

void renumber(const std::uint32_t* numbers, std::size_t count, const std::uint64_t* plane,
              const std::uint32_t* before, std::uint32_t* out) {
  renumber_any(numbers, count, plane, before, out);
}

}  // namespace sparcml::scalar
