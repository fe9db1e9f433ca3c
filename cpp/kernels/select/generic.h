// The functions of select.h in the namespace of an instruction set: include it there once.
#include "kernels/select/above.h"
#include "kernels/select/buckets.h"
#include "kernels/select/exact.h"

#define SPARCML_SELECT_DEFINE(T)                                                             \
  template <>                                                                                \
  void top_k<T>(const T* values, std::size_t size, std::size_t k, Room<T> room) {            \
    top_k_any(values, size, k, room);                                                        \
  }                                                                                          \
  template <>                                                                                \
  double owe_top_k<T>(Owing<T> owing, std::size_t k, Room<T> room) {                         \
    return owe_top_k_any(owing, k, room);                                                    \
  }                                                                                          \
  template <>                                                                                \
  void bucket_top_k<T>(const T* values, std::size_t size, std::size_t k, std::size_t bucket, \
                       Room<T> room) {                                                       \
    bucket_top_k_any(values, size, k, bucket, room);                                         \
  }                                                                                          \
  template <>                                                                                \
  double owe_bucket_top_k<T>(Owing<T> owing, std::size_t k, std::size_t bucket,              \
                             Room<T> room) {                                                 \
    return owe_bucket_top_k_any(owing, k, bucket, room);                                     \
  }                                                                                          \
  template <>                                                                                \
  std::size_t at_least<T>(const T* values, std::size_t size, T threshold, Room<T> room) {    \
    return at_least_any(values, size, threshold, room);                                      \
  }                                                                                          \
  template <>                                                                                \
  double owe_at_least<T>(Owing<T> owing, T threshold, Room<T> room, std::size_t& found) {    \
    return owe_at_least_any(owing, threshold, room, found);                                  \
  }                                                                                          \
  template <>                                                                                \
  double owe<T>(Owing<T> owing) {                                                            \
    Owe<T> all(owing);                                                                       \
    all.until(owing.size);                                                                   \
    return all.squares();                                                                    \
  }                                                                                          \
  template <>                                                                                \
  void block_squares<T>(const T* values, std::size_t size, std::size_t block, double* out) { \
    for (std::size_t start = 0; start < size; start += block)                                \
      *out++ = canonical(squares(values + start, std::min(block, size - start)));            \
  }
