// The loop behind both instruction sets; the compiler vectorises it as its file's flags allow.
#pragma once

#include "kernels/moments/moments.h"
#include "kernels/norms.h"

namespace sparcml {
namespace {

struct Lanes {
  float largest[8] = {};
  double sum[8] = {}, squares[8] = {};
  std::uint32_t missing[8] = {};

  void add(const float* v, std::size_t n) {
    for (std::size_t j = 0; j < n; ++j) {
      const bool number = v[j] == v[j];
      const float x = number ? v[j] : 0, size = std::fabs(x);
      const double wide = x;
      largest[j] = size > largest[j] ? size : largest[j];
      sum[j] += wide;
      squares[j] += wide * wide;
      missing[j] += number ? 0 : 1;
    }
  }
};

constexpr std::size_t kPiece = std::size_t{1} << 30;  // before a count of 32 bits overflows

inline Moments all_moments(const float* values, std::size_t n) {
  Lanes lanes;
  Moments all{0, 0, 0, n};
  for (std::size_t start = 0; start < n; start += kPiece) {
    const std::size_t end = n - start < kPiece ? n : start + kPiece;
    std::size_t i = start;
    for (; i + 8 <= end; i += 8) lanes.add(values + i, 8);
    lanes.add(values + i, end - i);
    for (std::uint32_t& missing : lanes.missing) {
      all.count -= missing;
      missing = 0;
    }
  }
  for (float largest : lanes.largest)
    all.largest = largest > all.largest ? largest : all.largest;
  all.sum = tree(lanes.sum);
  all.squares = tree(lanes.squares);
  return all;
}

}  // namespace
}  // namespace sparcml
