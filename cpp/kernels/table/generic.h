// Constants of one bucket, and scalar encoding and decoding.
#pragma once

#include "kernels/op.h"
#include "kernels/table/table.h"

namespace sparcml {
namespace {

constexpr unsigned kRows = 128;

// The table prepared for lookups, padded with unused rows.
struct Rows : Table {
  explicit Rows(const Table& table) : Table(table) {
    for (unsigned j = 0; j < kRows; ++j) {
      lower[j] = j < count ? levels[j] : kInfinity;  // no value reaches these
      inverse[j] = j < count ? 1 / (levels[j + 1] - levels[j]) : 0;
      value[j] = j <= count ? levels[j] : kNaN;
    }
    while (2 * half < count) half *= 2;
    first = bits_of(levels[1]) >> 23;
    powers = bits_of(levels[1]) == first << 23 && first > 0;
    for (unsigned j = 1; j < count; ++j) powers = powers && levels[j + 1] == 2 * levels[j];
  }

  static std::uint32_t bits_of(float x) { return sparcml::bits(x); }

  float lower[kRows], inverse[kRows], value[kRows];
  unsigned half = 1;    // first step of the binary search: the largest power of two below count
  bool powers;          // whether each level is a power of two and twice the one before
  std::uint32_t first;  // the exponent of level 1, if powers
};

struct Steps {
  Steps(float norm, const Rows& rows)
      : rows(rows),
        factor(rescaling(norm)),
        multiplier(norm == 0 ? 0 : 1 / (norm * factor)),
        nan_code(code_of_nan(rows.bits)) {}

  std::int8_t code(float v, std::uint32_t random) const {
    float r = std::fabs(v) * factor * multiplier +
              (v - v);  // v - v turns an infinity into NaN, which is not clipped
    if (r != r) return static_cast<std::int8_t>(nan_code);
    r = r > 1 ? 1 : r;
    unsigned j = 0;
    for (unsigned step = rows.half; step; step /= 2)
      if (r >= rows.lower[j + step]) j += step;
    const float fraction = (r - rows.lower[j]) * rows.inverse[j] * kUnit;
    const std::int32_t up =
        (nearest(fraction) + static_cast<std::int32_t>(random)) >> kFraction;
    const std::int32_t level = static_cast<std::int32_t>(j) + (up > 1 ? 1 : up);
    return static_cast<std::int8_t>(v < 0 ? -level : level);
  }

  const Rows& rows;
  float factor, multiplier;
  int nan_code;
};

struct Values {
  Values(float norm, const Rows& rows)
      : rows(rows),
        factor(rescaling(norm)),
        norm(norm * factor),
        nan_code(code_of_nan(rows.bits)),
        unscaled(factor == 1) {}

  float of(int code) const {
    if (code == nan_code) return kNaN;
    const float size = rows.value[code < 0 ? -code : code] * norm / factor;
    return canonical(code < 0 ? -size : size);
  }

  const Rows& rows;
  float factor, norm;
  int nan_code;
  bool unscaled;
};

}  // namespace
}  // namespace sparcml
