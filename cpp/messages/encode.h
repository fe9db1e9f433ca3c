// Encoding of vectors as messages in the smallest format, as `wire/encoding.py` defines it.
#pragma once

#include "kernels/bitmap/bitmap.h"
#include "kernels/compact/compact.h"
#include "kernels/gap/gap.h"
#include "messages/vector.h"

namespace sparcml::messages {

struct IndexForm {
  IndexFormat format = dense_format;
  std::size_t nbytes = 0;
  unsigned parameter = 0;
};

// Returns the smallest index format; ties go to the lower number.
inline IndexForm cheapest(const std::uint32_t* indices, std::size_t nnz, std::size_t blocks) {
  constexpr std::size_t most = UINT32_MAX - 7;  // the field of the header has 32 bits
  const unsigned r = nnz ? gap_parameter(nnz, indices[nnz - 1]) : 0;
  const IndexForm forms[] = {
      {u32_format, padded(4 * nnz), 0},
      {gap_format, gap_nbytes(indices, nnz, r), r},
      {bitmap_format, bitmap_nbytes(static_cast<std::uint32_t>(blocks)), 0}};
  IndexForm best{bitmap_format, SIZE_MAX, 0};
  for (const IndexForm& form : forms)
    if (form.nbytes <= most && form.nbytes < best.nbytes) best = form;
  return best;
}

inline void write_indices(const IndexForm& form, const std::uint32_t* indices, std::size_t nnz,
                          std::size_t blocks, std::uint8_t* out) {
  if (form.format == gap_format) {
    gap_encode(indices, nnz, form.parameter, out);
  } else if (form.format == bitmap_format) {
    bitmap_encode(indices, nnz, static_cast<std::uint32_t>(blocks), out);
  } else if (nnz) {
    std::memcpy(out, indices, 4 * nnz);
    std::memset(out + 4 * nnz, 0, form.nbytes - 4 * nnz);
  }
}

// Returns the message that a dense vector lies in, if nothing else uses it: it only gets a new
// header, and must not be overwritten from then on.
template <class T>
Message home(Call& call, Vector<T>& x) {
  const std::size_t nbytes = x.blocks * entry_bytes<T>(call);
  if (!x.scratch || !nbytes || x.value_memory->size < header_bytes + nbytes) return {};
  const auto* values = reinterpret_cast<const std::uint8_t*>(x.values);
  if (values != x.value_memory->data + header_bytes) return {};
  x.scratch = false;
  return {x.value_memory, header_bytes + nbytes};
}

// From this density on, the Golomb-Rice code of a dense vector is a bitmap.
template <class T>
bool is_crowded(Call& call, const Vector<T>& x, std::size_t nnz, T fill) {
  // The definition compares with 0.4 * blocks in floating point.
  if (call.block > 1 || nnz < 3 ||
      static_cast<double>(nnz) < 0.4 * static_cast<double>(x.blocks))
    return false;
  const std::size_t last = (x.blocks - 1) / 64 * 64;
  const Dense<Moved<T>> word{moved(x.values + last), x.blocks - last, 1, *moved(&fill), true};
  return count_nonfill<Moved<T>>(word) > 0;
}

template <class T>
Message start_message(Call& call, std::size_t nnz, std::size_t index_bytes,
                      const ValueFormat& format) {
  const std::size_t size = header_bytes + index_bytes + format.nbytes<T>(nnz * call.block);
  return {call.host.allocate(size), size};
}

template <class T>
Message encode_sparse(Call& call, const Vector<T>& x, const IndexForm& form,
                      const ValueFormat& format) {
  Message message = start_message<T>(call, x.nnz, form.nbytes, format);
  write_indices(form, x.indices, x.nnz, x.blocks, message.data() + header_bytes);
  write_values(format, x.values, x.nnz * call.block,
               message.data() + header_bytes + form.nbytes);
  return message;
}

// Encodes a dense vector that a bitmap describes.
template <class T>
Message encode_crowded(Call& call, const Dense<Moved<T>>& values, std::size_t nnz,
                       const IndexForm& form, const ValueFormat& format) {
  Message message = start_message<T>(call, nnz, form.nbytes, format);
  std::uint8_t *plane = message.data() + header_bytes, *section = plane + form.nbytes;
  if (!format.grid) {
    bitmap_compact<Moved<T>>(values, nnz, plane, reinterpret_cast<Moved<T>*>(section));
    return message;
  }
  const Shared memory = call.host.allocate(nnz * sizeof(T));
  bitmap_compact<Moved<T>>(values, nnz, plane, reinterpret_cast<Moved<T>*>(memory->data));
  write_values(format, reinterpret_cast<const T*>(memory->data), nnz, section);
  return message;
}

// Encodes x; if it is sent dense, x becomes dense, so that all ranks hold the same form.
template <class T>
Message encode(Call& call, Vector<T>& x, int round, const ValueFormat& format = {}) {
  Timer timer(call, encode_phase, round, static_cast<std::int64_t>(x.nnz));
  const auto value_bytes = [&](std::size_t entries) {
    return format.nbytes<T>(entries * call.block);
  };
  const std::size_t dense_bytes = value_bytes(x.blocks);
  const T fill = fill_of<T>(call.op);
  Header header = call.header(round);
  if (x.dense) header.index_format = held_dense;
  if (format.grid) header.value_format = grid_values;
  Message message;
  std::size_t nnz = x.nnz;
  IndexForm form;
  if (x.dense) {
    const Dense<Moved<T>> values{moved(x.values), x.blocks * call.block, call.block,
                                 *moved(&fill), true};
    nnz = count_nonfill<Moved<T>>(values);
    const std::size_t bitmap = nnz ? bitmap_nbytes(static_cast<std::uint32_t>(x.blocks)) : 0;
    if (value_bytes(nnz) + bitmap < dense_bytes) {
      if (is_crowded(call, x, nnz, fill)) {
        form = {bitmap_format, bitmap, 0};
        message = encode_crowded<T>(call, values, nnz, form, format);
      } else {
        Vector<T> sparse = empty_sparse<T>(call, x.blocks, nnz);
        auto* indices = const_cast<std::uint32_t*>(sparse.indices);
        compact<Moved<T>>(values, nnz, indices, moved(sparse.writable()));
        form = cheapest(indices, nnz, x.blocks);
        if (form.nbytes + value_bytes(nnz) < dense_bytes)
          message = encode_sparse(call, sparse, form, format);
      }
    }
  } else {
    form = cheapest(x.indices, nnz, x.blocks);
    if (form.nbytes + value_bytes(nnz) < dense_bytes)
      message = encode_sparse(call, x, form, format);
  }
  if (!message.memory) {
    form = {}, nnz = x.blocks;
    if (!x.dense) x = densify(call, x);
    if (!format.grid) message = home(call, x);
    if (!message.memory) {
      message = start_message<T>(call, nnz, 0, format);
      write_values(format, x.values, nnz * call.block, message.data() + header_bytes);
    }
  }
  header.index_format |= form.format;
  header.nnz = static_cast<std::uint32_t>(nnz);
  header.index_bytes = static_cast<std::uint32_t>(form.nbytes);
  write_header(header, message.data(), message.size);
  return message;
}

}  // namespace sparcml::messages
