#include "kernels/selection/selection.h"

#include <algorithm>

namespace sparcml {

// Twice k, and not less than a sample may select for a small k.
std::size_t top_k_capacity(std::size_t size, std::size_t k) {
  constexpr std::size_t minimum = 1 << 15, word = 128;
  return std::min(size, k + std::max(k, minimum)) + word;
}

template <class T>
void top_k(const T* values, std::size_t size, std::size_t k, EntryBuffer<T> buffer) {
  SPARCML_PICK(top_k<T>)(values, size, k, buffer);
}

template <class T>
double top_k_with_residual(ResidualInput<T> input, std::size_t k, EntryBuffer<T> buffer) {
  return SPARCML_PICK(top_k_with_residual<T>)(input, k, buffer);
}

template <class T>
void bucket_top_k(const T* values, std::size_t size, std::size_t k, std::size_t bucket,
                  EntryBuffer<T> buffer) {
  SPARCML_PICK(bucket_top_k<T>)(values, size, k, bucket, buffer);
}

template <class T>
double bucket_top_k_with_residual(ResidualInput<T> input, std::size_t k, std::size_t bucket,
                                  EntryBuffer<T> buffer) {
  return SPARCML_PICK(bucket_top_k_with_residual<T>)(input, k, bucket, buffer);
}

template <class T>
std::size_t at_least(const T* values, std::size_t size, T threshold, EntryBuffer<T> buffer) {
  return SPARCML_PICK(at_least<T>)(values, size, threshold, buffer);
}

template <class T>
double at_least_with_residual(ResidualInput<T> input, T threshold, EntryBuffer<T> buffer,
                              std::size_t& count) {
  return SPARCML_PICK(at_least_with_residual<T>)(input, threshold, buffer, count);
}

template <class T>
double add_residual(ResidualInput<T> input) {
  return SPARCML_PICK(add_residual<T>)(input);
}

template <class T>
void block_squared_norms(const T* values, std::size_t size, std::size_t block, double* out) {
  SPARCML_PICK(block_squared_norms<T>)(values, size, block, out);
}

SPARCML_SELECTION_INSTANCES(float);
SPARCML_SELECTION_INSTANCES(double);

}  // namespace sparcml
