#include "kernels/select/select.h"

#include <algorithm>

namespace sparcml {

// Twice as many as wanted, and no less than a sample of small k may bring.
std::size_t top_k_room(std::size_t size, std::size_t k) {
  constexpr std::size_t least = 1 << 15, word = 128;
  return std::min(size, k + std::max(k, least)) + word;
}

template <class T>
void top_k(const T* values, std::size_t size, std::size_t k, Room<T> room) {
  SPARCML_PICK(top_k<T>)(values, size, k, room);
}

template <class T>
double owe_top_k(Owing<T> owing, std::size_t k, Room<T> room) {
  return SPARCML_PICK(owe_top_k<T>)(owing, k, room);
}

template <class T>
void bucket_top_k(const T* values, std::size_t size, std::size_t k, std::size_t bucket,
                  Room<T> room) {
  SPARCML_PICK(bucket_top_k<T>)(values, size, k, bucket, room);
}

template <class T>
double owe_bucket_top_k(Owing<T> owing, std::size_t k, std::size_t bucket, Room<T> room) {
  return SPARCML_PICK(owe_bucket_top_k<T>)(owing, k, bucket, room);
}

template <class T>
std::size_t at_least(const T* values, std::size_t size, T threshold, Room<T> room) {
  return SPARCML_PICK(at_least<T>)(values, size, threshold, room);
}

template <class T>
double owe_at_least(Owing<T> owing, T threshold, Room<T> room, std::size_t& found) {
  return SPARCML_PICK(owe_at_least<T>)(owing, threshold, room, found);
}

template <class T>
double owe(Owing<T> owing) {
  return SPARCML_PICK(owe<T>)(owing);
}

template <class T>
void block_squares(const T* values, std::size_t size, std::size_t block, double* out) {
  SPARCML_PICK(block_squares<T>)(values, size, block, out);
}

#define SPARCML_SELECT_INSTANCE(T)                                                      \
  template void top_k(const T*, std::size_t, std::size_t, Room<T>);                     \
  template double owe_top_k(Owing<T>, std::size_t, Room<T>);                            \
  template void bucket_top_k(const T*, std::size_t, std::size_t, std::size_t, Room<T>); \
  template double owe_bucket_top_k(Owing<T>, std::size_t, std::size_t, Room<T>);        \
  template std::size_t at_least(const T*, std::size_t, T, Room<T>);                     \
  template double owe_at_least(Owing<T>, T, Room<T>, std::size_t&);                     \
  template double owe(Owing<T>);                                                        \
  template void block_squares(const T*, std::size_t, std::size_t, double*)

SPARCML_SELECT_INSTANCE(float);
SPARCML_SELECT_INSTANCE(double);

}  // namespace sparcml
