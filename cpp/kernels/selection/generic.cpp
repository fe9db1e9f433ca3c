#include "kernels/selection/above.h"
#include "kernels/selection/buckets.h"
#include "kernels/selection/exact.h"

namespace sparcml::SPARCML_NAMESPACE {

template <class T>
void top_k(const T* values, std::size_t size, std::size_t k, EntryBuffer<T> buffer) {
  top_k_any(values, size, k, buffer);
}

template <class T>
double top_k_with_residual(ResidualInput<T> input, std::size_t k, EntryBuffer<T> buffer) {
  return top_k_with_residual_any(input, k, buffer);
}

template <class T>
void bucket_top_k(const T* values, std::size_t size, std::size_t k, std::size_t bucket,
                  EntryBuffer<T> buffer) {
  bucket_top_k_any(values, size, k, bucket, buffer);
}

template <class T>
double bucket_top_k_with_residual(ResidualInput<T> input, std::size_t k, std::size_t bucket,
                                  EntryBuffer<T> buffer) {
  return bucket_top_k_with_residual_any(input, k, bucket, buffer);
}

template <class T>
std::size_t at_least(const T* values, std::size_t size, T threshold, EntryBuffer<T> buffer) {
  return at_least_any(values, size, threshold, buffer);
}

template <class T>
double at_least_with_residual(ResidualInput<T> input, T threshold, EntryBuffer<T> buffer,
                              std::size_t& count) {
  return at_least_with_residual_any(input, threshold, buffer, count);
}

template <class T>
double add_residual(ResidualInput<T> input) {
  return add_residual_any(input);
}

template <class T>
void block_squared_norms(const T* values, std::size_t size, std::size_t block, double* out) {
  for (std::size_t start = 0; start < size; start += block)
    *out++ = canonical(squared_norm(values + start, std::min(block, size - start)));
}

SPARCML_SELECTION_INSTANCES(float);
SPARCML_SELECTION_INSTANCES(double);

}  // namespace sparcml::SPARCML_NAMESPACE
