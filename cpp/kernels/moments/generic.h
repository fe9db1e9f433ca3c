// Lanes of sums, and a scalar loop.
#pragma once

#include "kernels/moments/moments.h"
#include "kernels/norms.h"

namespace sparcml {
namespace {

struct Lanes {
  float largest[8] = {};
  double sum[8] = {}, squares[8] = {};
  std::size_t count = 0;

  void add(const float* v, std::size_t n) {
    for (std::size_t j = 0; j < n; ++j) {
      const float x = v[j] == v[j] ? v[j] : 0, size = std::fabs(x);
      const double wide = x;
      largest[j] = size > largest[j] ? size : largest[j];
      sum[j] += wide;
      squares[j] += wide * wide;
      count += v[j] == v[j];
    }
  }
};

constexpr std::size_t kSegment = std::size_t{1} << 30;  // less than overflows a 32-bit count

// Loops::add adds a segment except for its last few values and returns the number added.
template <class Loops>
inline Moments all_moments(const float* values, std::size_t n) {
  Lanes lanes;
  for (std::size_t start = 0; start < n; start += kSegment) {
    const std::size_t segment = n - start < kSegment ? n - start : kSegment;
    const std::size_t done = Loops::add(values + start, segment, lanes);
    lanes.add(values + start + done, segment - done);
  }
  float most = 0;
  for (float largest : lanes.largest) most = largest > most ? largest : most;
  return {most, tree(lanes.sum), tree(lanes.squares), lanes.count};
}

}  // namespace
}  // namespace sparcml
