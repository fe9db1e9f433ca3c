#include "kernels/bits.h"
#include "kernels/merge_many/threaded.h"

namespace sparcml::scalar {
namespace {

struct Plain {
  static std::uint32_t lowest(std::uint64_t bits) { return __builtin_ctzll(bits | 1ull << 63); }

  static std::uint64_t touched(const std::uint8_t* line) { return bits_of_bytes(line); }
};

}  // namespace

template <class T>
std::size_t merge_many(Op op, Stream<T>* streams, std::size_t count, std::size_t block,
                       std::uint32_t* oi, T* ov) {
  return fold_any<Plain>(op, streams, count, block, oi, ov);
}

SPARCML_FOR_NUMBERS(merge_many);

}  // namespace sparcml::scalar
