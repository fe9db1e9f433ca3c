// Joins encoded ranges: each is decoded to its place in the result.
#pragma once

#include <numeric>

#include "messages/decode.h"
#include "messages/ranges.h"

namespace sparcml::messages {

// Writes the entries of a message to `indices`, which count from `start`, and `values`.
template <class T>
void write_entries(Call& call, const Message& message, const Origin& from, std::uint32_t start,
                   std::uint32_t* indices, T* values) {
  Timer timer(call, decode_phase, from.round, -1, from.source,
              static_cast<std::int64_t>(message.size));
  const Header h = check<T>(call, message, from);
  const std::uint8_t* section = message.data() + header_bytes;
  const auto limit = static_cast<std::uint32_t>(from.blocks);
  const auto reject = [&] {
    call.host.reject(from.reading, message, from.source, from.round, from.blocks);
  };
  const std::uint8_t format = index_format(h);
  if (format == dense_format) {
    std::iota(indices, indices + h.nnz, start);
  } else {
    if (format == u32_format) {
      Shared none;
      const std::uint32_t* stored = nullptr;
      if (read_indices(h, section, from.blocks, none, call.host, stored)) reject();
      std::copy_n(stored, h.nnz, indices);
    } else if (format == gap_format
                   ? gap_decode(section, h.index_bytes, h.nnz, limit, indices) != nullptr
                   : bitmap_decode(section, h.index_bytes, h.nnz, limit, indices) != nullptr) {
      reject();
    }
    for (std::size_t i = 0; start && i < h.nnz; ++i) indices[i] += start;  // still cached
  }
  section += h.index_bytes;
  const std::size_t count = std::size_t{h.nnz} * call.block;
  if (h.value_format == raw_values)
    std::copy_n(reinterpret_cast<const T*>(section), count, values);
  else
    read_grid(section, count, values);
}

// Returns the vector of the ranges in these messages of one round, by rank; dense if that is no
// larger. The same as `join` of the decoded messages, with one pass less over a sparse result.
template <class T>
Vector<T> join_messages(Call& call, const std::vector<Message>& messages, int round,
                        const std::vector<std::size_t>& offsets) {
  const auto origin = [&](std::size_t rank) {
    return Origin{static_cast<int>(rank), round, offsets[rank + 1] - offsets[rank]};
  };
  std::size_t nnz = 0;
  for (std::size_t rank = 0; rank < messages.size(); ++rank) {
    const Message& message = messages[rank];
    // Checked before memory is allocated, and completely when the message is read.
    const bool may_hold =
        message.size >= header_bytes && read_header(message.data()).nnz <= origin(rank).blocks;
    nnz +=
        may_hold ? read_header(message.data()).nnz : check<T>(call, message, origin(rank)).nnz;
  }
  const std::size_t blocks = offsets.back();
  if (dense_is_smaller(nnz, blocks, entry_bytes<T>(call))) {
    std::vector<Vector<T>> ranges;
    for (std::size_t rank = 0; rank < messages.size(); ++rank)
      ranges.push_back(decode<T>(call, messages[rank], origin(rank), false));
    return join(call, ranges, offsets);
  }
  Vector<T> out = empty_sparse<T>(call, blocks, nnz);
  auto* indices = const_cast<std::uint32_t*>(out.indices);
  T* values = out.writable();
  for (std::size_t rank = 0; rank < messages.size(); ++rank) {
    write_entries(call, messages[rank], origin(rank), static_cast<std::uint32_t>(offsets[rank]),
                  indices, values);
    const std::size_t some = read_header(messages[rank].data()).nnz;
    indices += some, values += some * call.block;
  }
  return out;
}

}  // namespace sparcml::messages
