// Decoding of messages; every field is checked before it is used.
#pragma once

#include "kernels/ascending/ascending.h"
#include "kernels/bitmap/bitmap.h"
#include "kernels/expand/expand.h"
#include "kernels/gap/gap.h"
#include "messages/vector.h"

namespace sparcml::messages {

// Where a message comes from, and the blocks of the range that it describes.
struct Origin {
  int source, round;
  std::size_t blocks;
  Reading reading = Reading::vector;
};

// What is wrong with a message. The sentences are in wire/decoding.py, in this order.
enum class Fault : int {
  none,
  checksum,
  header_only,
  nnz,
  index_bytes,
  index_format,
  dense,
  u32_bytes,
  order,     // of the index at `position`
  capacity,  // of the section, for nnz entries
  section,   // `reason` is that of the kernel
  bitmap
};

struct Finding {
  Fault fault = Fault::none;
  const char* reason = "";
  std::size_t position = 0;

  explicit operator bool() const { return fault != Fault::none; }
};

inline std::uint8_t index_format(const Header& h) {
  return static_cast<std::uint8_t>(h.index_format & ~held_dense);
}

// Checks the fields that describe the sections, for a range of `blocks`.
inline Fault check_sections(const Header& h, std::size_t blocks) {
  if (h.value_format == no_values) return Fault::header_only;
  if (h.nnz > blocks) return Fault::nnz;
  if (h.index_bytes % 8) return Fault::index_bytes;
  if (index_format(h) > bitmap_format) return Fault::index_format;
  const bool is_full = h.nnz == blocks && !h.index_bytes;
  return index_format(h) == dense_format && !is_full ? Fault::dense : Fault::none;
}

// Checks all but the index section, and returns the header. Host::reject() raises the error.
template <class T>
Header check(Call& call, const Message& message, const Origin& from) {
  const auto reject = [&] {
    call.host.reject(from.reading, message, from.source, from.round, from.blocks);
  };
  if (message.size < header_bytes) reject();
  const Header h = read_header(message.data()), own = call.header(from.round);
  const bool ours = h.magic == own.magic && h.version == own.version && h.call == own.call &&
                    h.sequence == own.sequence && h.dtype == own.dtype &&
                    h.round == own.round && h.blocks == own.blocks && h.block == own.block;
  const std::uint8_t values = call.quantization ? grid_values : raw_values;
  if (!ours || h.value_format != values || check_sections(h, from.blocks) != Fault::none)
    reject();
  const std::size_t values_at = header_bytes + h.index_bytes;
  GridFormat grid;
  ValueFormat received;
  if (call.quantization) {
    if (message.size < values_at + sizeof grid) reject();
    std::memcpy(&grid, message.data() + values_at, sizeof grid);
    if (!(grid == call.quantization->own || grid == call.quantization->reduced)) reject();
    received.grid = &grid;
  }
  const std::size_t size = values_at + received.nbytes<T>(std::size_t{h.nnz} * call.block);
  if (message.size != size || h.crc != checksum(message.data(), size)) reject();
  return h;
}

// Reads nnz ascending indices below `blocks`, which may stay in the section itself.
inline Finding read_indices(const Header& h, const std::uint8_t* section, std::size_t blocks,
                            Shared& memory, Allocator& allocator,
                            const std::uint32_t*& indices) {
  const auto limit = static_cast<std::uint32_t>(blocks);
  const std::uint8_t format = index_format(h);
  if (format == u32_format) {
    const std::size_t used = 4 * std::size_t{h.nnz};
    if (h.index_bytes != padded(used) ||
        std::any_of(section + used, section + h.index_bytes, [](auto byte) { return byte; }))
      return {Fault::u32_bytes};
    indices = reinterpret_cast<const std::uint32_t*>(section);
    const std::size_t fine = ascending_prefix(indices, h.nnz, limit);
    return fine < h.nnz ? Finding{Fault::order, "", fine} : Finding{};
  }
  if (h.nnz > 8 * std::size_t{h.index_bytes}) return {Fault::capacity};  // before it allocates
  memory = allocator.allocate(4 * std::size_t{h.nnz});
  auto* out = reinterpret_cast<std::uint32_t*>(memory->data);
  indices = out;
  const char* reason = format == gap_format
                           ? gap_decode(section, h.index_bytes, h.nnz, limit, out)
                           : bitmap_decode(section, h.index_bytes, h.nnz, limit, out);
  return reason ? Finding{Fault::section, reason} : Finding{};
}

// Writes the values of a checked message, which may be decoded, to their places in `out`.
template <class T>
Finding place_values(const VectorContext& context, const Header& h, const std::uint8_t* section,
                     const T* values, std::size_t blocks, T* out) {
  const std::size_t size = blocks * context.block;
  const T fill = context.fill_value<T>();
  if (index_format(h) == dense_format) {
    if (size) std::memcpy(out, values, size * sizeof(T));
    return {};
  }
  if (index_format(h) == bitmap_format && context.block == 1) {
    const Plane<Moved<T>> plane{section, h.index_bytes, moved(values), h.nnz};
    const char* reason = bitmap_expand<Moved<T>>(plane, *moved(&fill), moved(out), size);
    return reason ? Finding{Fault::bitmap, reason} : Finding{};
  }
  Shared memory;
  const std::uint32_t* indices = nullptr;
  if (const Finding found = read_indices(h, section, blocks, memory, context.memory, indices))
    return found;
  std::fill_n(out, size, fill);
  scatter_assign<Moved<T>>(moved(out), {indices, moved(values), h.nnz}, context.block);
  return {};
}

// Returns the values of a checked message in memory of their own, or in the message if they are
// not quantized.
template <class T>
const T* stored_values(Call& call, const Header& h, const Message& message, Shared& memory) {
  const std::uint8_t* section = message.data() + header_bytes + h.index_bytes;
  if (h.value_format == raw_values) {
    memory = message.memory;
    return reinterpret_cast<const T*>(section);
  }
  const std::size_t count = std::size_t{h.nnz} * call.block;
  memory = call.host.allocate(count * sizeof(T));
  T* const values = reinterpret_cast<T*>(memory->data);
  read_grid(section, count, values);
  return values;
}

// Decodes values on a grid and writes those of a bitmap to `out`, in parts that stay in the
// cache. Returns whether the bitmap is right.
inline bool expand_grid(Call& call, const Header& h, const std::uint8_t* bits, float fill,
                        float* out, std::size_t size) {
  if (h.index_bytes != bitmap_nbytes(static_cast<std::uint32_t>(size))) return false;
  const std::uint8_t* norms = bits + h.index_bytes + sizeof(GridFormat);
  GridFormat format;
  std::memcpy(&format, norms - sizeof format, sizeof format);
  const std::size_t bucket = format.bucket, nnz = h.nnz;
  const std::uint8_t* codes = norms + 4 * ((nnz + bucket - 1) / bucket);
  const Grid grid = format.grid(nnz);
  constexpr std::size_t step = 1 << 18;  // values, which the kernel writes past the caches
  const std::size_t most = std::min(nnz, step + 2 * bucket);
  const Shared memory = call.host.allocate(most * sizeof(float));
  auto* const values = reinterpret_cast<float*>(memory->data);
  std::size_t at = 0;
  for (std::size_t start = 0; start < size; start += step, bits += step / 8) {
    const std::size_t span = std::min(step, size - start);
    const std::size_t nbytes = bitmap_nbytes(static_cast<std::uint32_t>(span));
    const std::size_t ones = bitmap_ones(bits, nbytes / 8);
    if (ones > nnz - at) return false;
    const std::size_t first = at / bucket, begin = first * bucket;
    const std::size_t end = std::min(nnz, (at + ones + bucket - 1) / bucket * bucket);
    if (ones)
      from_grid_to(norms + 4 * first, codes + begin / 8 * format.bits, end - begin, grid,
                   values);
    const Plane<float> plane{bits, nbytes, values + (at - begin), ones};
    if (bitmap_expand<float>(plane, fill, out + start, span)) return false;
    at += ones;
  }
  return at == nnz;
}

// Writes all values of a checked message to `out`.
template <class T>
void write_to(Call& call, const Header& h, const Message& message, const Origin& from, T* out) {
  const auto reject = [&] {
    call.host.reject(from.reading, message, from.source, from.round, from.blocks);
  };
  const std::uint8_t* section = message.data() + header_bytes;
  const std::size_t size = from.blocks * call.block;
  if (h.value_format != raw_values && index_format(h) == dense_format)
    return read_grid(section, size, out);
  if constexpr (std::is_same_v<T, float>) {
    const bool has_bits = index_format(h) == bitmap_format && h.value_format != raw_values;
    if (has_bits && call.block == 1 && call.quantization->own.bucket % 8 == 0 &&
        call.quantization->own.bucket) {
      if (!expand_grid(call, h, section, call.fill_value<T>(), out, size)) reject();
      return;
    }
  }
  Shared memory;
  const T* values = stored_values<T>(call, h, message, memory);
  if (place_values(call, h, section, values, from.blocks, out)) reject();
}

// Returns the vector of a message: dense if the sender held it dense and `as_held` is set.
template <class T>
Vector<T> read(Call& call, const Message& message, const Origin& from, bool as_held = true) {
  const Header h = check<T>(call, message, from);
  const bool is_dense = index_format(h) == dense_format;
  if (!is_dense && as_held && (h.index_format & held_dense)) {
    Vector<T> x = empty_dense<T>(call, from.blocks);
    write_to(call, h, message, from, x.writable());
    return x;
  }
  Vector<T> x;
  x.blocks = from.blocks, x.nnz = h.nnz, x.dense = is_dense;
  x.values = stored_values<T>(call, h, message, x.value_memory);
  x.scratch = x.value_memory->writable;
  if (h.value_format != raw_values) x.index_memory = message.memory;  // may have the indices
  if (!is_dense && read_indices(h, message.data() + header_bytes, from.blocks, x.index_memory,
                                call.host, x.indices))
    call.host.reject(from.reading, message, from.source, from.round, from.blocks);
  return x;
}

template <class T>
Vector<T> decode(Call& call, const Message& message, const Origin& from, bool as_held = true) {
  Timer timer(call, decode_phase, from.round, -1, from.source,
              static_cast<std::int64_t>(message.size));
  return read<T>(call, message, from, as_held);
}

// Writes the values of a message to their places in a dense range.
template <class T>
void decode_into(Call& call, const Message& message, const Origin& from, T* out) {
  Timer timer(call, decode_phase, from.round, -1, from.source,
              static_cast<std::int64_t>(message.size));
  write_to(call, check<T>(call, message, from), message, from, out);
}

}  // namespace sparcml::messages
