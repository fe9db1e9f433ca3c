// The entries of largest magnitude: exactly k, k of every bucket, or all above a threshold.
//
// Magnitudes are compared by the bits of |v|, as integers: NaN is above infinity, and that
// above all numbers. Of equal ones the lowest index is taken. Entries come out ascending.
//
// The `owe` forms first write out = residual + gradient (out may be the residual), with
// every NaN the canonical one, and return the sum of squares of that: the values of a
// block of 2048 are squared in double and added to lane i mod 8, the lanes are halved
// until one is left, and the blocks are added one after the other.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa.h"
#include "kernels/op.h"

namespace sparcml {

// Of |v|, as a signed integer: -1 is below all ranks.
template <class T>
using Rank = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

template <class T>
struct Room {
  std::uint32_t* indices;
  T* values;
  std::size_t size;
};

template <class T>
struct Owing {
  const T* residual;
  const T* gradient;
  T* out;
  std::size_t size;
};

// What the search for k of `size` entries needs, to hold its candidates.
std::size_t top_k_room(std::size_t size, std::size_t k);

#define SPARCML_SELECT_FUNCTIONS                                                            \
  template <class T>                                                                        \
  void top_k(const T* values, std::size_t size, std::size_t k, Room<T> room);               \
  template <class T>                                                                        \
  double owe_top_k(Owing<T> owing, std::size_t k, Room<T> room);                            \
  template <class T>                                                                        \
  void bucket_top_k(const T* values, std::size_t size, std::size_t k, std::size_t bucket,   \
                    Room<T> room);                                                          \
  template <class T>                                                                        \
  double owe_bucket_top_k(Owing<T> owing, std::size_t k, std::size_t bucket, Room<T> room); \
  template <class T>                                                                        \
  std::size_t at_least(const T* values, std::size_t size, T threshold, Room<T> room);       \
  template <class T>                                                                        \
  double owe_at_least(Owing<T> owing, T threshold, Room<T> room, std::size_t& found);       \
  template <class T>                                                                        \
  double owe(Owing<T> owing);                                                               \
  template <class T>                                                                        \
  void block_squares(const T* values, std::size_t size, std::size_t block, double* out)

// top_k, bucket_top_k: k is at most size, or bucket. The owe forms zero what they selected.
// at_least: returns how many there are, and writes as many as there is room for; its owe
// form leaves `out` whole. block_squares: a NaN is the canonical one.
SPARCML_SELECT_FUNCTIONS;
namespace scalar {
SPARCML_SELECT_FUNCTIONS;
}
namespace avx2 {
SPARCML_SELECT_FUNCTIONS;
}

}  // namespace sparcml
