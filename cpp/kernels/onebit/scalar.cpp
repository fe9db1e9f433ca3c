#include "kernels/onebit/generic.h"

namespace sparcml {
namespace {

inline std::uint32_t bits_from(const float* v, float threshold) {
  std::uint32_t group = 0;
  for (std::size_t j = 0; j < kGroup; ++j)
    group |= static_cast<std::uint32_t>(v[j] >= threshold) << j;
  return group;
}

struct Loops {
  // Sums of the values below zero (and NaN), and of the others.
  class Classes {
   public:
    std::uint32_t operator()(const float* v) {
      // Separate loops keep branches out: signs are hard to predict.
      float low[kGroup], high[kGroup];
      for (std::size_t j = 0; j < kGroup; ++j) high[j] = v[j] >= 0 ? v[j] : 0.0f;
      for (std::size_t j = 0; j < kGroup; ++j) low[j] = v[j] >= 0 ? 0.0f : v[j];
      for (std::size_t j = 0; j < kGroup; ++j) high_[j % 8] += high[j];
      for (std::size_t j = 0; j < kGroup; ++j) low_[j % 8] += low[j];
      return bits_from(v, 0);
    }
    double low() const { return tree(low_); }
    double high() const { return tree(high_); }

   private:
    double low_[8] = {}, high_[8] = {};
  };

  // Adds the distances from `from`.
  class Distances {
   public:
    explicit Distances(float from) : from_(from) {}
    std::uint32_t operator()(const float* v) {
      for (std::size_t j = 0; j < kGroup; ++j) {
        const double x = static_cast<double>(v[j]) - static_cast<double>(from_);
        sum_[j % 8] += __builtin_fabs(x);
      }
      return bits_from(v, from_);
    }
    double sum() const { return tree(sum_); }

   private:
    float from_;
    double sum_[8] = {};
  };

  static double sum(const float* v, std::size_t n) {
    double lanes[8] = {};
    for (std::size_t i = 0; i < n; ++i) lanes[i % 8] += v[i];
    return tree(lanes);
  }
};

class Choose {
 public:
  Choose(float low, float high) : level_{low, high} {}
  void operator()(std::uint32_t bits, float* v) const {
    for (std::size_t j = 0; j < kGroup; ++j) v[j] = level_[bits >> j & 1];
  }

 private:
  float level_[2];
};

}  // namespace

namespace scalar {

void one_bit_zero(const float* v, std::size_t n, std::size_t bucket, float* levels,
                  std::uint8_t* bits) {
  all_zero<Loops>(v, n, bucket, levels, bits);
}

void one_bit_mean(const float* v, std::size_t n, std::size_t bucket, float* levels,
                  std::uint8_t* bits) {
  all_mean<Loops>(v, n, bucket, levels, bits);
}

void to_sign(const float* v, std::size_t n, std::size_t bucket, float* scales,
             std::uint8_t* bits) {
  all_signs<Loops>(v, n, bucket, scales, bits);
}

void from_bitplane(const float* levels, const std::uint8_t* bits, std::size_t n,
                   std::size_t bucket, float* v) {
  all_two_levels<Choose>(levels, bits, n, bucket, v);
}

}  // namespace scalar
}  // namespace sparcml
