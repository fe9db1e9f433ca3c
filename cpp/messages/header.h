// The header of 32 bytes that opens every message; see docs/wire-format.md.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/crc/crc.h"
#include "messages/memory.h"

namespace sparcml::messages {

constexpr std::size_t header_bytes = 32;
constexpr std::size_t crc_at = 28;

enum IndexFormat : std::uint8_t { dense_format, u32_format, gap_format, bitmap_format };
constexpr std::uint8_t held_dense = 0x80;  // bit of the index format
constexpr std::uint8_t raw_values = 0;
constexpr std::uint8_t no_values = 255;

static_assert(std::endian::native == std::endian::little,
              "messages are little-endian, and are copied without conversion");

// The fields in their order.
struct Header {
  std::uint16_t magic = 0x5053;
  std::uint8_t version = 1;
  std::uint8_t call = 0;
  std::uint32_t sequence = 0;
  std::uint8_t dtype = 0;
  std::uint8_t index_format = dense_format;
  std::uint8_t value_format = raw_values;
  std::uint8_t round = 0;
  std::uint32_t blocks = 0;
  std::uint32_t block = 1;
  std::uint32_t nnz = 0;
  std::uint32_t index_bytes = 0;
  std::uint32_t crc = 0;
};
static_assert(sizeof(Header) == header_bytes);

inline std::uint32_t checksum(const std::uint8_t* message, std::size_t size) {
  const std::uint32_t head = crc32c(message, crc_at, 0);
  return crc32c(message + header_bytes, size - header_bytes, head);
}

// Writes the header of a message whose sections are complete.
inline void write_header(Header header, std::uint8_t* message, std::size_t size) {
  header.crc = 0;
  std::memcpy(message, &header, header_bytes);
  header.crc = checksum(message, size);
  std::memcpy(message + crc_at, &header.crc, sizeof header.crc);
}

inline Header read_header(const std::uint8_t* message) {
  Header header;
  std::memcpy(&header, message, header_bytes);
  return header;
}

inline std::size_t padded(std::size_t nbytes) { return (nbytes + 7) & ~std::size_t{7}; }

}  // namespace sparcml::messages
