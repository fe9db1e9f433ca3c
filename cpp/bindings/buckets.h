// Checked arguments of the kernels that quantize in buckets.
#pragma once

#include "bindings/arrays.h"
#include "kernels/buckets.h"

inline sparcml::Buckets as_buckets(std::size_t n, std::size_t nbytes, std::size_t bucket,
                                   unsigned bits, int norm, float scale) {
  require(bucket > 0, "bucket must be at least 1");
  require(bits >= 2 && bits <= 8, "bits must be 2 to 8");
  require(norm >= 0 && norm <= 2, "norm must be 0 (max), 1 (l2) or 2 (given)");
  const std::size_t buckets = n / bucket + (n % bucket != 0);
  require(nbytes == 4 * buckets + n / 8 * bits + (n % 8 * bits + 7) / 8,
          "code must have 4 bytes per bucket and the bits of all values");
  return {bucket, bits, static_cast<sparcml::Norm>(norm), scale};
}
