// Messages of the collectives in Python, see src/sparcml/wire.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "bindings/arrays.h"
#include "bindings/message_memory.h"
#include "messages/decode.h"
#include "messages/encode.h"

namespace {

// Memory that a Python function returns, as an array of bytes.
class PythonAllocator final : public ms::Allocator {
 public:
  explicit PythonAllocator(nb::handle function) : function_(function) {}

  ms::Shared allocate(std::size_t size) override {
    nb::gil_scoped_acquire gil;
    return memory_of(function_(size), size);
  }

 private:
  nb::handle function_;
};

// Returns the Python object that owns the memory of a PythonAllocator.
nb::object owner_of(const ms::Shared& memory) {
  return static_cast<const PythonMemory&>(*memory).owner();
}

// A value section that a quantizer in Python writes.
class PythonValues {
 public:
  explicit PythonValues(nb::handle section)
      : section_(section),
        preserves_zero_(section.is_none() || nb::cast<bool>(section.attr("preserves_zero"))) {}

  bool is_raw() const { return section_.is_none(); }
  bool preserves_zero() const { return preserves_zero_; }

  template <class T>
  std::size_t nbytes(std::size_t count) const {
    if (is_raw()) return count * sizeof(T);
    nb::gil_scoped_acquire gil;
    return nb::cast<std::size_t>(section_.attr("nbytes")(count));
  }

  template <class T>
  std::size_t write(const T* values, std::size_t count, std::uint8_t* out) const {
    const std::size_t size = nbytes<T>(count);
    if (is_raw()) {
      if (count) std::memcpy(out, values, size);
      return size;
    }
    nb::gil_scoped_acquire gil;
    const nb::object from = view_of(const_cast<T*>(values), count * sizeof(T), PyBUF_READ);
    const nb::object written = section_.attr("write")(from, view_of(out, size, PyBUF_WRITE));
    const auto used = nb::cast<std::int64_t>(written);
    require(used >= 0 && static_cast<std::size_t>(used) <= size,
            "a quantizer has written another number of bytes than its nbytes");
    return static_cast<std::size_t>(used);
  }

 private:
  static nb::object view_of(void* data, std::size_t size, int access) {
    return nb::steal(PyMemoryView_FromMemory(static_cast<char*>(data),
                                             static_cast<Py_ssize_t>(size), access));
  }

  nb::handle section_;
  const bool preserves_zero_;
};

// Integers may be given as floats, such as 0.0.
template <class T>
std::uint64_t bits_of(nb::handle fill) {
  if constexpr (std::is_integral_v<T>)
    return sparcml::bits(static_cast<T>(nb::cast<std::int64_t>(nb::int_(fill))));
  else
    return sparcml::bits(static_cast<T>(nb::cast<double>(fill)));
}

ms::Header header_of(Bytes message) {
  require(message.size() >= ms::header_bytes, "message: there must be a header");
  const ms::Header header = ms::read_header(message.data());
  require(message.size() - ms::header_bytes >= header.index_bytes,
          "message: the index section must be complete");
  return header;
}

// Returns the index section.
const std::uint8_t* section_of(Bytes message) {
  require(ms::is_aligned(message.data()), "message: sections must begin at words");
  return message.data() + ms::header_bytes;
}

// What is wrong with a message: the fault, the reason and the position.
using Found = std::optional<std::tuple<int, std::string, std::size_t>>;

Found described(const ms::Finding& found) {
  if (!found) return std::nullopt;
  return std::make_tuple(static_cast<int>(found.fault), std::string(found.reason),
                         found.position);
}

Found check_message(Bytes message, std::optional<std::uint32_t> blocks) {
  const ms::Header header = header_of(message);
  ms::Fault fault = ms::Fault::checksum;
  {
    nb::gil_scoped_release nogil;
    if (header.crc == ms::checksum(message.data(), message.size()))
      fault = blocks ? ms::check_sections(header, *blocks) : ms::Fault::none;
  }
  return described({fault});
}

// Returns the memory of the indices, None if they stay in the message; and what is wrong.
std::pair<nb::any, Found> message_indices(Bytes message, std::uint32_t blocks,
                                          nb::handle allocate) {
  const ms::Header header = header_of(message);
  const std::uint8_t* section = section_of(message);
  PythonAllocator allocator(allocate);
  ms::Shared memory;
  ms::Finding found;
  {
    nb::gil_scoped_release nogil;
    const std::uint32_t* indices = nullptr;
    found = ms::read_indices(header, section, blocks, memory, allocator, indices);
  }
  return {nb::borrow<nb::any>(memory ? owner_of(memory) : nb::none()), described(found)};
}

using Encoded = nb::typed<nb::tuple, nb::any, std::size_t, nb::any>;

template <class T>
void bind(nb::module_& m) {
  m.def(
      "encode_message",
      [](nb::bytes head, std::uint32_t blocks, std::optional<In<std::uint32_t>> indices,
         In<T> values, nb::handle fill, nb::handle home, nb::handle section, bool bounded,
         nb::handle allocate) {
        ms::Header header;
        require(head.size() == sizeof header, "encode_message: head must have 32 bytes");
        std::memcpy(&header, head.c_str(), sizeof header);
        ms::Vector<T> x;
        x.blocks = x.nnz = blocks;
        x.dense = !indices;
        x.values = values.data();
        if (indices) x.indices = indices->data(), x.nnz = indices->size();
        if (!home.is_none()) x.value_memory = memory_of(home), x.scratch = true;
        require(header.block > 0 && has_blocks(values.size(), x.nnz, header.block),
                "encode_message: values must have block values per index");
        if (indices)
          require_ascending(*indices, "encode_message: indices must ascend below blocks",
                            blocks);
        PythonAllocator allocator(allocate);
        const PythonValues format(section);
        const ms::VectorContext context{allocator, header.block, bits_of<T>(fill)};
        ms::Message message;
        {
          nb::gil_scoped_release nogil;
          message = ms::Encoder<T, PythonValues>(context, format, bounded).encode(x, header);
        }
        const bool became_dense = indices && x.dense;
        return nb::borrow<Encoded>(
            nb::make_tuple(owner_of(message.memory), message.size,
                           became_dense ? owner_of(x.value_memory) : nb::none()));
      },
      "head"_a, "blocks"_a, "indices"_a.noconvert().none(), "values"_a.noconvert(), "fill"_a,
      "home"_a.none(), "section"_a.none(), "bounded"_a, "allocate"_a,
      "Return the memory and the bytes of a message, and the memory of a vector that became "
      "dense.");
  m.def(
      "place_values",
      [](Bytes message, In<T> values, nb::handle fill, Out<T> out, nb::handle allocate) {
        const ms::Header header = header_of(message);
        require(header.block > 0 && out.size() % header.block == 0 &&
                    has_blocks(values.size(), header.nnz, header.block),
                "place_values: values and out must be those of the message");
        const std::size_t blocks = out.size() / header.block;
        require(blocks <= UINT32_MAX && ms::check_sections(header, blocks) == ms::Fault::none,
                "place_values: the message must have been checked");
        const std::uint8_t* section = section_of(message);
        PythonAllocator allocator(allocate);
        const ms::VectorContext context{allocator, header.block, bits_of<T>(fill)};
        ms::Finding found;
        {
          nb::gil_scoped_release nogil;
          found = ms::place_values(context, header, section, values.data(), blocks, out.data());
        }
        return described(found);
      },
      "message"_a.noconvert(), "values"_a.noconvert(), "fill"_a, "out"_a.noconvert(),
      "allocate"_a, "Write all values of a checked message; return what is wrong.");
}

}  // namespace

void register_codec(nb::module_& m) {
  m.attr("MAX_EXPANSION") = ms::max_expansion;
  m.def("check_message", check_message, "message"_a.noconvert(), "blocks"_a.none(),
        "Check a message, also for a range of blocks if given; return what is wrong.");
  m.def("message_indices", message_indices, "message"_a.noconvert(), "blocks"_a, "allocate"_a,
        "Return the memory of the indices of a checked message, and what is wrong.");
  bind<float>(m);
  bind<double>(m);
  bind<std::int32_t>(m);
  bind<std::int64_t>(m);
}
