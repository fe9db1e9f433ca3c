#include "kernels/compact/generic.h"

namespace sparcml::scalar {
namespace {

struct Plain {
  // Compares into 64 bytes, which vectorises, then packs eight of them at a time into bits.
  template <bool bitwise, class T>
  static std::uint64_t differs(const T* values, T fill) {
    std::uint8_t found[64];
    for (int k = 0; k < 64; ++k) found[k] = differ<bitwise>(values[k], fill);
    std::uint64_t all = 0;
    for (int k = 0; k < 8; ++k) {
      std::uint64_t bytes;
      std::memcpy(&bytes, found + 8 * k, sizeof bytes);
      all |= (bytes * 0x0102040810204080ull >> 56) << 8 * k;
    }
    return all;
  }

  template <class T>
  static void pack(const T* values, std::uint64_t found, T* out) {
    pack_exactly(values, found, out);
  }
};

}  // namespace

template <class T>
std::size_t compact(Dense<T> dense, std::size_t limit, std::uint32_t* oi, T* ov) {
  return compact_any<Plain>(dense, limit, oi, ov);
}

template <class T>
std::size_t count_nonfill(Dense<T> dense) {
  return count_any<Plain>(dense);
}

template <class T>
std::size_t bitmap_compact(Dense<T> dense, std::size_t limit, std::uint8_t* bitmap, T* ov) {
  return squeeze_any<Plain>(dense, limit, bitmap, ov);
}

SPARCML_FOR_REALS(compact);
SPARCML_FOR_REALS(count_nonfill);
SPARCML_FOR_REALS(bitmap_compact);

}  // namespace sparcml::scalar
