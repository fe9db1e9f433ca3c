// Loops for all instruction sets; ones.h has those over the ones of a word.
#include "kernels/bitmap/check.h"

namespace sparcml {
namespace {

// There is no early exit, so that the loop vectorises; indices are usually valid.
inline bool ascending(const std::uint32_t* indices, std::size_t n) {
  std::uint32_t bad = 0;
  for (std::size_t i = 1; i < n; ++i) bad |= indices[i] <= indices[i - 1];
  return !bad;
}

}  // namespace

namespace SPARCML_NAMESPACE {

const char* bitmap_encode(const std::uint32_t* indices, std::size_t n, std::uint32_t blocks,
                          std::uint8_t* out) {
  if (n && indices[n - 1] >= blocks) return "bitmap_encode: indices must be below blocks";
  if (!ascending(indices, n)) return "bitmap_encode: indices must be strictly ascending";
  std::memset(out, 0, bitmap_nbytes(blocks));
  // The current word stays in a register and is stored with every bit, so that no load waits
  // for it.
  std::uint64_t word = 0;
  std::uint32_t at = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t next = indices[i] / 64;
    word = (word & -std::uint64_t{next == at}) | std::uint64_t{1} << (indices[i] & 63);
    store64(out + 8 * std::size_t{next}, word);
    at = next;
  }
  return nullptr;
}

const char* bitmap_decode(const std::uint8_t* data, std::size_t size, std::size_t n,
                          std::uint32_t blocks, std::uint32_t* out) {
  if (const char* wrong = check_bitmap(data, size, n, blocks)) return wrong;
  Ones(data, out, n).store_until(n);
  return nullptr;
}

}  // namespace SPARCML_NAMESPACE
}  // namespace sparcml
