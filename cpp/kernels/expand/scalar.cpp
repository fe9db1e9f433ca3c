#include "kernels/expand/generic.h"
#include "kernels/ones.h"

namespace sparcml::scalar {
namespace {

struct Plain {
  template <class T>
  static void unpack(std::uint64_t word, const T* values, T fill, T* out) {
    unpack_exactly(word, values, fill, out, 64);
  }
};

}  // namespace

template <class T>
const char* bitmap_expand(Plane<T> plane, T fill, T* out, std::size_t size) {
  return expand_any<Plain>(plane, fill, out, size);
}

SPARCML_FOR_REALS(bitmap_expand);

std::size_t bitmap_ones(const std::uint8_t* bits, std::size_t words) {
  return count_ones(bits, words);
}

}  // namespace sparcml::scalar
