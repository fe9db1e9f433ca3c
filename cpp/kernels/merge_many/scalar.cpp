#include "kernels/merge_many/threaded.h"

namespace sparcml::scalar {
namespace {

struct Plain {
  static std::uint32_t lowest(std::uint64_t bits) { return __builtin_ctzll(bits | 1ull << 63); }

  // The product moves the lowest bits of 8 bytes into the top byte.
  static std::uint64_t touched(const std::uint8_t* line) {
    std::uint64_t all = 0;
    for (int k = 0; k < 8; ++k) {
      std::uint64_t bytes;
      std::memcpy(&bytes, line + 8 * k, sizeof bytes);
      all |= (bytes * 0x0102040810204080ull >> 56) << 8 * k;
    }
    return all;
  }
};

}  // namespace

template <class T>
std::size_t merge_many(Op op, Stream<T>* streams, std::size_t count, std::size_t block,
                       std::uint32_t* oi, T* ov) {
  return fold_any<Plain>(op, streams, count, block, oi, ov);
}

SPARCML_FOR_NUMBERS(merge_many);

}  // namespace sparcml::scalar
