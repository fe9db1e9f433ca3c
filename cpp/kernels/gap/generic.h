// Common to all instruction sets: sizes, the checks of a section, and scalar loops.
#pragma once

#include "kernels/gap/gap.h"
#include "kernels/ones.h"

namespace sparcml {
namespace {

constexpr std::uint32_t index_limit = 0xFFFFFFFF;
constexpr std::size_t segment = 1024;  // indices decoded at a time, and up to 72 more

inline std::uint32_t gap_at(const std::uint32_t* indices, std::size_t i) {
  return i ? indices[i] - indices[i - 1] - 1 : indices[0];
}

inline std::uint32_t low_mask(unsigned r) { return (std::uint32_t{1} << r) - 1; }

inline std::size_t words(std::uint64_t bits) { return (bits + 63) / 64; }

inline std::size_t section_bytes(const std::uint32_t* indices, std::size_t n, unsigned r) {
  if (n == 0) return 0;
  // Gaps of ascending indices add up to less than 2^32. There is no early exit, as indices are
  // usually valid.
  std::uint32_t high = indices[0] >> r;
  std::uint32_t bad = indices[n - 1] == index_limit;
  for (std::size_t i = 1; i < n; ++i) {
    high += (indices[i] - indices[i - 1] - 1) >> r;
    bad |= indices[i] <= indices[i - 1];
  }
  if (bad) return 0;
  return 8 + 8 * words(std::uint64_t{n} * r) + 8 * words(std::uint64_t{n} + high);
}

// Writers are passed and returned by value, so that they stay in registers.
inline BitWriter encode_low(BitWriter writer, const std::uint32_t* indices, std::size_t begin,
                            std::size_t end, unsigned r) {
  if (r == 0) return writer;
  for (std::size_t i = begin; i < end; ++i) writer.append(gap_at(indices, i) & low_mask(r), r);
  return writer;
}

inline BitWriter encode_high(BitWriter writer, const std::uint32_t* indices, std::size_t begin,
                             std::size_t end, unsigned r) {
  for (std::size_t i = begin; i < end; ++i) writer.append_unary(gap_at(indices, i) >> r);
  return writer;
}

struct Section {
  unsigned r;
  const std::uint8_t* low;
  const std::uint8_t* high;
  const std::uint8_t* end;
  std::uint64_t min_last;  // the last index if all low parts were 0
};

inline std::uint32_t low_at(const Section& s, std::size_t i) {
  // This may read up to 8 bytes too far, which the high plane always has.
  const std::uint64_t bit = std::uint64_t{i} * s.r;
  return static_cast<std::uint32_t>(load64(s.low + bit / 8) >> (bit & 7)) & low_mask(s.r);
}

// Converts out[begin..end) from positions in the high plane to indices (modulo 2^32). `sum` is
// the sum of all low parts so far.
inline std::uint64_t add_low(const Section& s, std::size_t begin, std::size_t end,
                             std::uint64_t sum, std::uint32_t* out) {
  for (std::size_t i = begin; i < end; ++i) {
    const auto entry = static_cast<std::uint32_t>(i);
    sum += low_at(s, i);
    out[i] = ((out[i] - entry) << s.r) + static_cast<std::uint32_t>(sum) + entry;
  }
  return sum;
}

inline const char* find_planes(const std::uint8_t* data, std::size_t size, std::size_t n,
                               Section& s) {
  if (size < 16 || size % 8) return "gap: section is cut short";
  const std::uint64_t head = load64(data);
  if (head > 31) return "gap: r must be 0 to 31, and the bytes after it 0";
  s.r = static_cast<unsigned>(head);
  const std::uint64_t low_bits = std::uint64_t{n} * s.r;
  if (words(low_bits) > (size - 16) / 8) return "gap: section is cut short";
  s.low = data + 8;
  s.high = s.low + 8 * words(low_bits);
  s.end = data + size;
  if (low_bits % 64 && load64(s.high - 8) >> (low_bits % 64))
    return "gap: padding of the low plane must be 0";
  return nullptr;
}

// Checks that the high plane has n ones and ends with the last, and that positions fit in 32
// bits.
inline const char* check_high(Section& s, std::size_t n, std::uint32_t blocks) {
  const std::size_t count = static_cast<std::size_t>(s.end - s.high) / 8;
  const std::uint64_t last = load64(s.end - 8);
  if (last == 0) return "gap: section is too long or has too few entries";
  const std::uint64_t bits = 64 * std::uint64_t{count} - __builtin_clzll(last);
  if (bits < n) return "gap: section has too few entries";
  if (bits > blocks) return "gap: index out of bounds";
  s.min_last = ((bits - n) << s.r) + n - 1;
  if (s.min_last >= blocks) return "gap: index out of bounds";
  if (count_ones(s.high, count) != n) return "gap: section has a wrong number of entries";
  return nullptr;
}

// `finish` adds the low plane: add_low, or a faster function.
template <class Finish>
const char* decode_section(const std::uint8_t* data, std::size_t size, std::size_t n,
                           std::uint32_t blocks, std::uint32_t* out, Finish finish) {
  if (n == 0) return size ? "gap: a section without entries must have no bytes" : nullptr;
  if (n > blocks) return "gap: more entries than blocks";
  Section s;
  if (const char* error = find_planes(data, size, n, s)) return error;
  if (const char* error = check_high(s, n, blocks)) return error;
  Ones ones(s.high, out, n);
  std::uint64_t sum = 0;
  // Segments are multiples of 8 and fit in the L1 cache.
  for (std::size_t done = 0, ready; done < n; done = ready) {
    const std::size_t stored = ones.store_until(n - done < segment ? n : done + segment);
    ready = stored == n ? n : stored & ~std::size_t{7};
    if (s.r) sum = finish(s, done, ready, sum, out);
  }
  // Indices ascend, so if the last one is valid, none before it exceeded 2^32.
  return s.min_last + sum < blocks ? nullptr : "gap: index out of bounds";
}

}  // namespace
}  // namespace sparcml
