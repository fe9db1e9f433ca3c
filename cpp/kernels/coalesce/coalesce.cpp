#include "kernels/coalesce/coalesce.h"

#include <array>
#include <utility>
#include <vector>

#include "kernels/isa.h"
#include "kernels/op.h"

namespace sparcml {
namespace {

constexpr int kBits = 11, kDigits = 3;  // of an index, per pass of the sort
constexpr std::uint64_t kRadix = 1 << kBits;
constexpr std::size_t kAhead = 12;  // rows that are fetched before they are added

std::size_t digit(std::uint64_t pair, int pass) {
  return pair >> (32 + kBits * pass) & (kRadix - 1);
}

// Returns pairs (index, position), sorted: an index in the upper half, its position below.
std::vector<std::uint64_t> sorted(const std::int64_t* indices, std::size_t n) {
  std::vector<std::uint64_t> pairs(n), other;
  std::array<std::array<std::size_t, kRadix>, kDigits> counts{};
  for (std::size_t k = 0; k < n; ++k) {
    pairs[k] = static_cast<std::uint64_t>(indices[k]) << 32 | k;
    for (int pass = 0; pass < kDigits; ++pass) ++counts[pass][digit(pairs[k], pass)];
  }
  for (int pass = 0; pass < kDigits; ++pass) {
    auto& starts = counts[pass];
    if (n == 0 || starts[digit(pairs[0], pass)] == n) continue;  // all are equal
    std::size_t sum = 0;
    for (auto& start : starts) sum += std::exchange(start, sum);
    other.resize(n);
    for (const std::uint64_t pair : pairs) other[starts[digit(pair, pass)]++] = pair;
    pairs.swap(other);
  }
  return pairs;
}

}  // namespace

template <class T>
std::size_t coalesce(const std::int64_t* indices, const T* values, std::size_t n,
                     std::size_t block, std::uint32_t* oi, T* ov) {
  const std::vector<std::uint64_t> pairs = sorted(indices, n);
  const auto row = [&](std::size_t k) { return values + (pairs[k] & UINT32_MAX) * block; };
  std::size_t count = 0;
  for (std::size_t k = 0; k < n; ++k) {
    if (k + kAhead < n) __builtin_prefetch(row(k + kAhead));
    const auto index = static_cast<std::uint32_t>(pairs[k] >> 32);
    const T* in = row(k);
    if (count == 0 || oi[count - 1] != index) {
      T* out = ov + count * block;
      for (std::size_t j = 0; j < block; ++j) out[j] = canonical(in[j]);
      oi[count++] = index;
    } else {
      T* out = ov + (count - 1) * block;
      for (std::size_t j = 0; j < block; ++j) out[j] = combine<Op::sum>(out[j], in[j]);
    }
  }
  return count;
}

SPARCML_FOR_NUMBERS(coalesce);

}  // namespace sparcml
