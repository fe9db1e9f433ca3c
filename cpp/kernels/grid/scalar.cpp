#include "kernels/grid/generic.h"

namespace sparcml::scalar {
namespace {

struct Loops {
  static void codes(const float* v, std::size_t n, const Steps& steps, Random random,
                    std::int8_t* codes) {
    codes_of(v, n, steps, random, codes);
  }

  static bool has_direct(unsigned) { return false; }
  static void direct(const std::uint8_t*, std::size_t, unsigned, const Values&, float*) {}

  static void values(const std::int8_t* codes, std::size_t n, const Values& bucket, float* v) {
    for (std::size_t i = 0; i < n; ++i) v[i] = bucket.of(codes[i]);
  }
};

}  // namespace

void to_grid(const float* values, std::size_t n, Grid grid, std::uint64_t seed,
             std::uint8_t* code) {
  any_to_grid<Loops>(values, n, grid, seed, code);
}

void from_grid(const std::uint8_t* code, std::size_t n, Grid grid, float* values) {
  any_from_grid<Loops>(code, n, grid, values);
}

}  // namespace sparcml::scalar
