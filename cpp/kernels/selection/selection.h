// Selects the entries of largest magnitude: k of all, k of every bucket, or all above a
// threshold.
//
// Magnitudes are compared by the bits of |v|, as integers: NaN is above infinity, and infinity
// is above all numbers. Among equal magnitudes the lowest index comes first. The entries
// ascend.
//
// The functions with a residual first write out = scale residual + gradient (out may be the
// residual) with every NaN canonical, and return the squared norm of that sum. Its order is
// defined: the values of a block of 2048 are squared in double precision and added to lane i
// mod 8, the lanes are added by a tree, and the blocks one after the other. With a momentum
// they add its term in place of the gradient, and write the new momentum, in the same scan.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/isa.h"
#include "kernels/op.h"

namespace sparcml {

// The bits of |v| as a signed integer: -1 is below all keys.
template <class T>
using Key = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

template <class T>
struct EntryBuffer {
  std::uint32_t* indices;
  T* values;
  std::size_t size;
};

// Momentum as in momentum.h. Without u there is none; `velocity`, the new one, may be u.
template <class T>
struct MomentumInput {
  const T* u = nullptr;
  T* velocity = nullptr;
  T momentum = 0;
  bool nesterov = false;
};

template <class T>
struct ResidualInput {
  const T* residual;
  const T* gradient;
  T* out;
  std::size_t size;
  T scale;
  MomentumInput<T> momentum = {};
};

namespace {

// Returns the buffer size that top_k needs to hold its candidates: twice k, and not less than a
// sample may select for a small k.
inline std::size_t top_k_capacity(std::size_t size, std::size_t k) {
  constexpr std::size_t minimum = 1 << 15, word = 128;
  return std::min(size, k + std::max(k, minimum)) + word;
}

}  // namespace

// top_k and bucket_top_k require k <= size and k <= bucket; with a residual they set the
// selected entries of `out` to zero. at_least returns the number of entries and writes those
// that fit; with a residual it leaves them in `out`. block_squared_norms writes every NaN as
// canonical.
SPARCML_KERNEL_OF_T(void, top_k, const T* values, std::size_t size, std::size_t k,
                    EntryBuffer<T> buffer);
SPARCML_KERNEL_OF_T(double, top_k_with_residual, ResidualInput<T> input, std::size_t k,
                    EntryBuffer<T> buffer);
SPARCML_KERNEL_OF_T(void, bucket_top_k, const T* values, std::size_t size, std::size_t k,
                    std::size_t bucket, EntryBuffer<T> buffer);
SPARCML_KERNEL_OF_T(double, bucket_top_k_with_residual, ResidualInput<T> input, std::size_t k,
                    std::size_t bucket, EntryBuffer<T> buffer);
SPARCML_KERNEL_OF_T(std::size_t, at_least, const T* values, std::size_t size, T threshold,
                    EntryBuffer<T> buffer);
SPARCML_KERNEL_OF_T(double, at_least_with_residual, ResidualInput<T> input, T threshold,
                    EntryBuffer<T> buffer, std::size_t& count);
SPARCML_KERNEL_OF_T(double, add_residual, ResidualInput<T> input);
SPARCML_KERNEL_OF_T(void, block_squared_norms, const T* values, std::size_t size,
                    std::size_t block, double* out);

}  // namespace sparcml
