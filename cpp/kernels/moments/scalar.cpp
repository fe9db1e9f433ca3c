#include "kernels/moments/generic.h"

namespace sparcml::scalar {
namespace {

struct Loop {
  static std::size_t add(const float* v, std::size_t n, Lanes& lanes) {
    for (std::size_t i = 0; i + 8 <= n; i += 8) lanes.add(v + i, 8);
    return n / 8 * 8;
  }
};

}  // namespace

Moments moments(const float* values, std::size_t n) { return all_moments<Loop>(values, n); }

}  // namespace sparcml::scalar
