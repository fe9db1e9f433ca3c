// Converts one value by its bits, in a form that the compiler vectorises.
#pragma once

#include <bit>

#include "kernels/half/half.h"

namespace sparcml {
namespace {

constexpr std::uint32_t infinity = 0x7F800000;

inline std::uint16_t half_of(float value) {
  const auto x = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = x & 0x7FFFFFFF;
  // Normal: the bias of the exponent changes from 127 to 15. A carry out of the fraction is
  // correct, too.
  const std::uint32_t normal = (magnitude + 0xFFF + (magnitude >> 13 & 1) - (112u << 23)) >> 13;
  // Denormal: in 0.5 + |value| the last bit is worth 2^-24, so the addition rounds.
  const std::uint32_t tiny =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) -
      std::bit_cast<std::uint32_t>(0.5f);
  std::uint32_t half = magnitude < 113u << 23 ? tiny : normal;
  half = magnitude >= 143u << 23 ? 0x7C00 : half;
  half |= x >> 16 & 0x8000;
  return static_cast<std::uint16_t>(magnitude > infinity ? 0x7E00 : half);
}

inline float float_of_half(std::uint16_t half) {
  const std::uint32_t magnitude = half & 0x7FFF;
  const std::uint32_t normal = (magnitude << 13) + (112u << 23);
  const auto tiny =
      std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<int>(magnitude)) * 0x1p-24f);
  std::uint32_t x = magnitude < 0x400 ? tiny : normal;
  x = magnitude >= 0x7C00 ? infinity : x;
  x |= (half & 0x8000u) << 16;
  return std::bit_cast<float>(magnitude > 0x7C00 ? 0x7FC00000 : x);
}

inline std::uint16_t bfloat_of(float value) {
  const auto x = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (x + 0x7FFF + (x >> 16 & 1)) >> 16;
  return static_cast<std::uint16_t>((x & 0x7FFFFFFF) > infinity ? 0x7FC0 : rounded);
}

inline float float_of_bfloat(std::uint16_t bits) {
  const std::uint32_t x = std::uint32_t{bits} << 16;
  return std::bit_cast<float>((x & 0x7FFFFFFF) > infinity ? 0x7FC00000 : x);
}

}  // namespace
}  // namespace sparcml
