// Constants of one bucket, and scalar encoding and decoding.
#pragma once

#include "kernels/grid/grid.h"
#include "kernels/op.h"

namespace sparcml {
namespace {

struct Steps {
  Steps(float norm, const Grid& grid)
      : factor(rescaling(norm)), nan_code(code_of_nan(grid.bits)) {
    const auto levels = static_cast<float>(grid.levels);
    limit = levels * kUnit;
    multiplier = norm == 0 ? 0 : levels / (norm * factor) * kUnit;
  }

  std::int8_t code(float v, std::uint32_t random) const {
    float x = v * factor * multiplier +
              (v - v);  // v - v turns an infinity into NaN, which is not clipped
    x = x > limit ? limit : x;
    x = x < -limit ? -limit : x;
    const std::int32_t fixed = nearest(x == x ? x : 0);
    const std::int32_t level = (fixed + static_cast<std::int32_t>(random)) >> kFraction;
    return static_cast<std::int8_t>(x == x ? level : nan_code);
  }

  float factor;
  int nan_code;             // the code of NaN
  float multiplier, limit;  // to fixed point; s in fixed point
};

struct Values {
  Values(float norm, const Grid& grid)
      : factor(rescaling(norm)),
        limit(std::fabs(norm)),
        step(norm * factor / static_cast<float>(grid.levels)),
        nan_code(code_of_nan(grid.bits)),
        unscaled(factor == 1) {}

  float of(int level) const {
    if (level == nan_code) return kNaN;
    float x = static_cast<float>(level) * step;
    if (unscaled) return x;
    x = x / factor;
    x = x > limit ? limit : x;  // the last level of the largest norms must not overflow
    x = x < -limit ? -limit : x;
    return canonical(x);
  }

  float factor, limit, step;
  int nan_code;
  bool unscaled;
};

}  // namespace
}  // namespace sparcml
