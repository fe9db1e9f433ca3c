#include "kernels/merge/generic.h"

namespace sparcml::scalar {
namespace {

struct Plain {
  template <Op op, class T>
  static void put(std::uint32_t x, const T* u, std::uint32_t y, const T* v, std::uint32_t* oi,
                  T* ov) {
    const Bits<T> none = bits(identity<op, T>()), in_a = mask<T>(x <= y),
                  in_b = mask<T>(y <= x);
    *oi = x < y ? x : y;
    *ov = combine_raw<op>(from_bits<T>((bits(*u) & in_a) | (none & ~in_a)),
                          from_bits<T>((bits(*v) & in_b) | (none & ~in_b)));
  }
};

}  // namespace

template <class T>
std::size_t merge(Op op, Stream<T> a, Stream<T> b, std::size_t block, std::uint32_t* oi,
                  T* ov) {
  return merge_any<Plain>(op, a, b, block, oi, ov);
}

SPARCML_FOR_NUMBERS(merge);

}  // namespace sparcml::scalar
