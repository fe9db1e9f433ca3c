// Scans 64 values at a time, for any instruction set.
//
// Isa::differs<bitwise> compares 64 values with the fill and returns one bit per value.
// Isa::pack writes the values that a mask selects from 64, and may overwrite the next 8.
#include "kernels/bits.h"
#include "kernels/compact/compact.h"
#include "kernels/spill.h"

namespace sparcml {
namespace {

template <bool bitwise, class T>
inline bool differ(T x, T fill) {
  return bitwise ? bits(x) != bits(fill) : x != fill;
}

// Returns one bit for each of up to 64 values, starting at `start`.
template <class Isa, bool bitwise, class T>
inline std::uint64_t word(const Dense<T>& d, std::size_t start) {
  if (start + kWord <= d.size) return Isa::template differs<bitwise>(d.values + start, d.fill);
  std::uint64_t found = 0;
  for (std::size_t k = start; k < d.size; ++k)
    found |= std::uint64_t(differ<bitwise>(d.values[k], d.fill)) << (k - start);
  return found;
}

// Calls emit(index) for each block that differs, until it returns false.
template <class Isa, bool bitwise, class T, class Emit>
void scan_blocks(const Dense<T>& d, Emit emit) {
  for (std::size_t start = 0; start < d.size;) {
    std::size_t next = start + kWord;
    std::uint64_t found = word<Isa, bitwise>(d, start);
    while (found) {
      const std::size_t index = (start + __builtin_ctzll(found)) / d.block;
      if (!emit(index)) return;
      const std::size_t done = (index + 1) * d.block - start;  // skips the rest of the block
      if (done >= kWord) {
        next = start + done;
        break;
      }
      found = found >> done << done;
    }
    start = next;
  }
}

template <class Isa, bool bitwise, class T>
std::size_t compact_values(const Dense<T>& d, std::size_t limit, std::uint32_t* oi, T* ov) {
  std::size_t o = 0;
  for (std::size_t start = 0; start < d.size; start += kWord) {
    const std::uint64_t found = word<Isa, bitwise>(d, start);
    const std::size_t more = __builtin_popcountll(found);
    const std::uint32_t index = static_cast<std::uint32_t>(start);
    const T* values = d.values + start;
    if (o + more > limit) return limit + 1;
    if (o + more + 8 > limit || start + kWord > d.size)
      spill_exactly(values, index, found, oi + o, ov + o);
    else
      spill_word(values, index, found, more, oi + o, ov + o);
    o += more;
  }
  return o;
}

template <class Isa, bool bitwise, class T>
std::size_t compact_blocks(const Dense<T>& d, std::size_t limit, std::uint32_t* oi, T* ov) {
  std::size_t o = 0;
  scan_blocks<Isa, bitwise>(d, [&](std::size_t index) {
    if (o++ == limit) return false;
    oi[o - 1] = static_cast<std::uint32_t>(index);
    std::memcpy(ov + (o - 1) * d.block, d.values + index * d.block, d.block * sizeof(T));
    return true;
  });
  return o;
}

template <class T>
inline void pack_exactly(const T* values, std::uint64_t found, T* out) {
  for (; found; found &= found - 1) *out++ = values[__builtin_ctzll(found)];
}

template <class Isa, bool bitwise, class T>
std::size_t squeeze_values(const Dense<T>& d, std::size_t limit, std::uint8_t* bitmap, T* ov) {
  std::size_t o = 0;
  for (std::size_t start = 0; start < d.size; start += kWord) {
    const std::uint64_t found = word<Isa, bitwise>(d, start);
    const std::size_t more = __builtin_popcountll(found);
    const T* values = d.values + start;
    store64(bitmap + start / 8, found);
    if (o + more > limit) return limit + 1;
    if (o + more + 8 > limit || start + kWord > d.size)
      pack_exactly(values, found, ov + o);
    else
      Isa::pack(values, found, ov + o);
    o += more;
  }
  return o;
}

template <class Isa, bool bitwise, class T>
std::size_t count_all(const Dense<T>& d) {
  std::size_t n = 0;
  if (d.block == 1)
    for (std::size_t start = 0; start < d.size; start += kWord)
      n += __builtin_popcountll(word<Isa, bitwise>(d, start));
  else
    scan_blocks<Isa, bitwise>(d, [&](std::size_t) { return ++n; });
  return n;
}

template <class Isa, class T>
std::size_t compact_any(const Dense<T>& d, std::size_t limit, std::uint32_t* oi, T* ov) {
  if (d.block == 1)
    return d.bitwise ? compact_values<Isa, true>(d, limit, oi, ov)
                     : compact_values<Isa, false>(d, limit, oi, ov);
  return d.bitwise ? compact_blocks<Isa, true>(d, limit, oi, ov)
                   : compact_blocks<Isa, false>(d, limit, oi, ov);
}

template <class Isa, class T>
std::size_t squeeze_any(const Dense<T>& d, std::size_t limit, std::uint8_t* bitmap, T* ov) {
  return d.bitwise ? squeeze_values<Isa, true>(d, limit, bitmap, ov)
                   : squeeze_values<Isa, false>(d, limit, bitmap, ov);
}

template <class Isa, class T>
std::size_t count_any(const Dense<T>& d) {
  return d.bitwise ? count_all<Isa, true>(d) : count_all<Isa, false>(d);
}

}  // namespace
}  // namespace sparcml
