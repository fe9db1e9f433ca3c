// Encoding of vectors as messages in the smallest format; see docs/wire-format.md.
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

// Returns the message that a dense vector lies in, if nothing else uses it: a sum formed in
// place only gets a new header, and must not be overwritten from then on.
template <class T>
Message home(const VectorContext& context, Vector<T>& x) {
  const std::size_t nbytes = x.blocks * entry_bytes<T>(context);
  if (!x.scratch || !nbytes || x.value_memory->size < header_bytes + nbytes) return {};
  const auto* values = reinterpret_cast<const std::uint8_t*>(x.values);
  if (values != x.value_memory->data + header_bytes) return {};
  x.scratch = false;
  return {x.value_memory, header_bytes + nbytes};
}

// Returns whether a bitmap is certainly the smallest index format of a dense vector. At this
// density a Golomb-Rice code is the bitmap up to its last entry and a head of 8 bytes, so it is
// not smaller if the last word of the bitmap has an entry. Two indices fit in one word.
template <class T>
bool is_crowded(const Dense<T>& values, std::size_t nnz) {
  if (values.block > 1 || nnz < 3 ||
      static_cast<double>(nnz) < 0.4 * static_cast<double>(values.size))
    return false;
  Dense<T> last_word = values;
  last_word.values += (values.size - 1) / 64 * 64;
  last_word.size -= (values.size - 1) / 64 * 64;
  return count_nonfill<T>(last_word) > 0;
}

// Maximum size of a decoded vector, in multiples of the message, if the receiver has no vector
// of its own to compare with.
constexpr std::size_t max_expansion = 1024;

// Vectors of one context and their messages. `Format` is ValueFormat, or has its functions.
template <class T, class Format>
class Encoder {
 public:
  // `bounded` messages have at least 1 / max_expansion of the bytes of a dense vector.
  Encoder(const VectorContext& context, const Format& format, bool bounded = false)
      : context_(context), format_(format), bounded_(bounded) {}

  // Encodes x; if it is sent dense, x becomes dense, so that all ranks hold the same form. The
  // header has all fields that do not follow from x.
  Message encode(Vector<T>& x, Header header) const {
    if (x.dense) header.index_format = held_dense;
    IndexForm form;
    std::size_t nnz = x.nnz;
    Message message = x.dense ? encode_dense(x, nnz, form) : encode_sparse(x, form);
    if (!message.memory) {
      form = {}, nnz = x.blocks;
      if (!x.dense) x = densify(context_, x);
      if (format_.is_raw()) message = home(context_, x);
      if (!message.memory) {
        message = start(nnz, form);
        write_values(x.values, nnz, form, message);
      }
    }
    header.index_format |= form.format;
    header.nnz = static_cast<std::uint32_t>(nnz);
    header.index_bytes = static_cast<std::uint32_t>(form.nbytes);
    write_header(header, message.data(), message.size);
    return message;
  }

 private:
  std::size_t value_bytes(std::size_t nnz) const {
    return format_.template nbytes<T>(nnz * context_.block);
  }

  // Returns a message with room for its sections.
  Message start(std::size_t nnz, const IndexForm& form) const {
    const std::size_t size = header_bytes + form.nbytes + value_bytes(nnz);
    return {context_.memory.allocate(size), size};
  }

  // Writes the value section, and shortens the message to it.
  void write_values(const T* values, std::size_t nnz, const IndexForm& form,
                    Message& message) const {
    const std::size_t at = header_bytes + form.nbytes;
    message.size = at + format_.write(values, nnz * context_.block, message.data() + at);
  }

  // These return no message if the dense form is no larger.
  Message encode_sparse(const Vector<T>& x, IndexForm& form) const {
    if (!format_.preserves_zero() && x.nnz == x.blocks) return {};
    form = cheapest(x.indices, x.nnz, x.blocks);
    return encode_entries(x, form);
  }

  Message encode_entries(const Vector<T>& x, const IndexForm& form) const {
    if (format_.preserves_zero() && form.nbytes + value_bytes(x.nnz) >= value_bytes(x.blocks))
      return {};
    Message message = start(x.nnz, form);
    write_indices(form, x.indices, x.nnz, x.blocks, message.data() + header_bytes);
    write_values(x.values, x.nnz, form, message);
    return message;
  }

  // Leaves out what is bitwise equal to the fill. Counting first costs one fast pass; most
  // dense vectors have few absent entries.
  Message encode_dense(const Vector<T>& x, std::size_t& nnz, IndexForm& form) const {
    if (!format_.preserves_zero()) return {};
    const T fill = context_.template fill_value<T>();
    const Dense<Moved<T>> values{moved(x.values), x.blocks * context_.block, context_.block,
                                 *moved(&fill), true};
    nnz = count_nonfill<Moved<T>>(values);
    const std::size_t bitmap = nnz ? bitmap_nbytes(static_cast<std::uint32_t>(x.blocks)) : 0;
    if (value_bytes(nnz) + bitmap >= value_bytes(x.blocks)) return {};
    if (is_crowded(values, nnz)) {
      form = {bitmap_format, bitmap, 0};
      return encode_crowded(values, nnz, form);
    }
    Vector<T> sparse = empty_sparse<T>(context_, x.blocks, nnz);
    auto* indices = const_cast<std::uint32_t*>(sparse.indices);
    compact<Moved<T>>(values, nnz, indices, moved(sparse.writable()));
    form = cheapest(indices, nnz, x.blocks);
    if (is_too_short(sparse, form)) {
      form = {bitmap_format, bitmap_nbytes(static_cast<std::uint32_t>(x.blocks)), 0};
      if (is_too_short(sparse, form)) return {};
    }
    return encode_entries(sparse, form);
  }

  bool is_too_short(const Vector<T>& x, const IndexForm& form) const {
    if (!bounded_) return false;
    const std::size_t nbytes = header_bytes + form.nbytes + value_bytes(x.nnz);
    return max_expansion * nbytes < x.blocks * entry_bytes<T>(context_);
  }

  // Encodes a dense vector that a bitmap describes, both sections in one pass.
  Message encode_crowded(const Dense<Moved<T>>& values, std::size_t nnz,
                         const IndexForm& form) const {
    Message message = start(nnz, form);
    std::uint8_t *plane = message.data() + header_bytes, *section = plane + form.nbytes;
    if (format_.is_raw()) {
      bitmap_compact<Moved<T>>(values, nnz, plane, reinterpret_cast<Moved<T>*>(section));
      return message;
    }
    const Shared memory = context_.memory.allocate(nnz * sizeof(T));
    bitmap_compact<Moved<T>>(values, nnz, plane, reinterpret_cast<Moved<T>*>(memory->data));
    write_values(reinterpret_cast<const T*>(memory->data), nnz, form, message);
    return message;
  }

  const VectorContext& context_;
  const Format& format_;
  const bool bounded_;
};

// Encodes a vector of a call.
template <class T>
Message encode(Call& call, Vector<T>& x, int round, const ValueFormat& format = {}) {
  Timer timer(call, encode_phase, round, static_cast<std::int64_t>(x.nnz));
  Header header = call.header(round);
  if (format.grid) header.value_format = grid_values;
  return Encoder<T, ValueFormat>(call, format).encode(x, header);
}

}  // namespace sparcml::messages
