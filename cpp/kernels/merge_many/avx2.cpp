#include <immintrin.h>

#include "kernels/merge_many/threaded.h"

namespace sparcml::avx2 {
namespace {

struct Vector {
  static std::uint32_t lowest(std::uint64_t bits) {
    return static_cast<std::uint32_t>(_tzcnt_u64(bits));
  }

  static std::uint64_t touched(const std::uint8_t* line) {
    return half(line) | static_cast<std::uint64_t>(half(line + 32)) << 32;
  }

 private:
  static std::uint32_t half(const std::uint8_t* bytes) {
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
    return _mm256_movemask_epi8(_mm256_slli_epi16(v, 7));
  }
};

}  // namespace

template <class T>
std::size_t merge_many(Op op, Stream<T>* streams, std::size_t count, std::size_t block,
                       std::uint32_t* oi, T* ov) {
  return fold_any<Vector>(op, streams, count, block, oi, ov);
}

SPARCML_FOR_NUMBERS(merge_many);

}  // namespace sparcml::avx2
