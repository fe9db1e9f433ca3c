// One bucket's numbers, and one value at a time.
#pragma once

#include "kernels/grid/grid.h"
#include "kernels/op.h"

namespace sparcml {
namespace {

struct Steps {
  Steps(float norm, const Grid& grid)
      : infinite(!(norm < kInfinity)), factor(rescaling(norm)), none(code_of_nan(grid.bits)) {
    const auto levels = static_cast<float>(grid.levels);
    most = levels * kUnit;
    times = norm == 0 || infinite ? 0 : levels / (norm * factor) * kUnit;
  }

  std::int8_t code(float v, std::uint32_t random) const {
    float x = v * factor * times + (v - v);  // no infinity is clipped: it is NaN
    if (infinite) x = std::fabs(v) == kInfinity || v != v ? v : 0;
    x = x > most ? most : x;
    x = x < -most ? -most : x;
    const std::int32_t fixed = nearest(x == x ? x : 0);
    const std::int32_t level = (fixed + static_cast<std::int32_t>(random)) >> kFraction;
    return static_cast<std::int8_t>(x == x ? level : none);
  }

  bool infinite;
  float factor;
  int none;           // the code of NaN
  float times, most;  // to the fixed point, and s there
};

struct Values {
  Values(float norm, const Grid& grid)
      : factor(rescaling(norm)),
        most(std::fabs(norm)),
        step(norm * factor / static_cast<float>(grid.levels)),
        none(code_of_nan(grid.bits)),
        plain(factor == 1) {}

  float of(int level) const {
    if (level == none) return kNaN;
    float x = static_cast<float>(level) * step;
    if (plain) return x;
    x = x / factor;
    x = x > most ? most : x;  // the last level of the largest norms is not to overflow
    x = x < -most ? -most : x;
    return canonical(x);
  }

  float factor, most, step;
  int none;
  bool plain;
};

}  // namespace
}  // namespace sparcml
