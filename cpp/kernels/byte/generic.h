// The loops behind both instruction sets; the compiler vectorises them as its file's flags
// allow.
#pragma once

#include <limits>

#include "kernels/byte/byte.h"

namespace sparcml {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

constexpr std::size_t kLanes = 32;  // as many maxima side by side, so that the compiler may

// The largest magnitude; NaN does not count. The order does not matter for a maximum.
inline float largest(const float* v, std::size_t n) {
  float most[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (std::size_t j = 0; j < kLanes; ++j) {
      const float size = v[i + j] < 0 ? -v[i + j] : v[i + j];
      most[j] = size > most[j] ? size : most[j];
    }
  for (; i < n; ++i) {
    const float size = v[i] < 0 ? -v[i] : v[i];
    most[0] = size > most[0] ? size : most[0];
  }
  float all = 0;
  for (float m : most) all = m > all ? m : all;
  return all;
}

// To the nearest whole number, ties to even: adding 1.5 * 2^23 leaves no room for a fraction.
inline float nearest(float x) { return (x + 12582912.0f) - 12582912.0f; }

inline std::int8_t code_of(float v, float x) {
  x = nearest(x);
  x = x > 127 ? 127 : x;
  x = x < -127 ? -127 : x;
  return static_cast<std::int8_t>(static_cast<std::int32_t>(v == v ? x : -128.0f));
}

inline void bucket_to_bytes(const float* v, std::size_t n, float* scale, std::int8_t* codes) {
  const float most = largest(v, n);
  const float step = most / 127;
  *scale = step;
  const float inverse = 127 / most;
  if (step > 0 && inverse < kInfinity && most < kInfinity) {
    for (std::size_t i = 0; i < n; ++i) codes[i] = code_of(v[i], v[i] * inverse);
  } else if (step > 0 && most < kInfinity) {  // denormals: 127 / most is not finite
    for (std::size_t i = 0; i < n; ++i) codes[i] = code_of(v[i], v[i] / step);
  } else {  // all zero or too small for a scale; or an infinity
    for (std::size_t i = 0; i < n; ++i) {
      const bool infinite = v[i] == kInfinity || v[i] == -kInfinity;
      codes[i] = code_of(v[i], infinite ? v[i] : 0);
    }
  }
}

inline void bucket_from_bytes(float scale, const std::int8_t* codes, std::size_t n, float* v) {
  for (std::size_t i = 0; i < n; ++i) {
    const float x = static_cast<float>(codes[i]) * scale;
    const bool number = codes[i] != -128 && x == x;
    v[i] = number ? x : std::numeric_limits<float>::quiet_NaN();
  }
}

inline void all_to_bytes(const float* values, std::size_t n, std::size_t bucket, float* scales,
                         std::int8_t* codes) {
  for (std::size_t at = 0; at < n; at += bucket, ++scales) {
    const std::size_t size = n - at < bucket ? n - at : bucket;
    bucket_to_bytes(values + at, size, scales, codes + at);
  }
}

inline void all_from_bytes(const float* scales, const std::int8_t* codes, std::size_t n,
                           std::size_t bucket, float* values) {
  for (std::size_t at = 0; at < n; at += bucket, ++scales) {
    const std::size_t size = n - at < bucket ? n - at : bucket;
    bucket_from_bytes(*scales, codes + at, size, values + at);
  }
}

}  // namespace
}  // namespace sparcml
