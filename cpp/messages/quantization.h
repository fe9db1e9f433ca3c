// Values on a grid in messages: QSGD with packed levels, as `quantize/qsgd.py` defines it.
#pragma once

#include <cstring>
#include <limits>
#include <vector>

#include "kernels/grid/grid.h"

namespace sparcml::messages {

constexpr std::uint8_t grid_values = 4;  // value format

// The settings that open a value section; the fields are in the order of the wire.
struct GridFormat {
  std::uint8_t bits, levels, norm, coder;
  std::uint32_t bucket;  // 0: the full vector

  std::size_t bucket_of(std::size_t count) const {
    return bucket ? bucket : std::max<std::size_t>(1, count);
  }
  // Returns the bytes of a section of `count` values.
  std::size_t nbytes(std::size_t count) const {
    const std::size_t size = bucket_of(count);
    return sizeof(GridFormat) + 4 * (count / size + (count % size != 0)) +
           (count * bits + 7) / 8;
  }
  Grid grid(std::size_t count) const {
    return {{bucket_of(count), bits, static_cast<Norm>(norm), 0}, levels};
  }
  bool operator==(const GridFormat& other) const {
    return !std::memcmp(this, &other, sizeof other);
  }
};
static_assert(sizeof(GridFormat) == 8);

// How a call quantizes: each rank's parts, and sums of all ranks.
struct Quantization {
  GridFormat own, reduced;
  std::uint64_t seed;

  // Returns the seed of a message of `rank` to `owner`, by FNV-1a over words.
  std::uint64_t message_seed(int rank, int owner, int round) const {
    std::uint64_t mixed = 0xCBF29CE484222325;
    for (const std::uint64_t number :
         {seed, static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(owner),
          static_cast<std::uint64_t>(round)})
      mixed = (mixed ^ number) * 0x100000001B3;
    return mixed;
  }
};

// The format of the values of one message.
struct ValueFormat {
  const GridFormat* grid = nullptr;  // null: as in memory
  std::uint64_t seed = 0;

  bool is_raw() const { return !grid; }
  // Returns whether zeros may be left out, or put in.
  bool preserves_zero() const { return true; }

  template <class T>
  std::size_t nbytes(std::size_t count) const {
    return grid ? grid->nbytes(count) : count * sizeof(T);
  }

  // Writes a value section and returns its bytes. Numbers of 8 bytes are quantized as floats.
  template <class T>
  std::size_t write(const T* values, std::size_t count, std::uint8_t* out) const {
    if (!grid) {
      if (count) std::memcpy(out, values, count * sizeof(T));
      return nbytes<T>(count);
    }
    std::memcpy(out, grid, sizeof(GridFormat));
    out += sizeof(GridFormat);
    if constexpr (std::is_same_v<T, float>) {
      to_grid(values, count, grid->grid(count), seed, out);
    } else {
      std::vector<float> narrow(values, values + count);
      to_grid(narrow.data(), count, grid->grid(count), seed, out);
    }
    return nbytes<T>(count);
  }
};

// Writes the values of a section with settings to `out`.
template <class T>
void read_grid(const std::uint8_t* section, std::size_t count, T* out) {
  GridFormat format;
  std::memcpy(&format, section, sizeof format);
  section += sizeof format;
  if constexpr (std::is_same_v<T, float>) {
    from_grid(section, count, format.grid(count), out);
  } else {
    std::vector<float> narrow(count);
    from_grid(section, count, format.grid(count), narrow.data());
    std::copy(narrow.begin(), narrow.end(), out);
  }
}

}  // namespace sparcml::messages
