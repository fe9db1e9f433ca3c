#include "bindings/message_loop.h"
#include "messages/allgather_add.h"
#include "messages/encode.h"

namespace {

// Returns the vectors of all ranks by rank; other messages, and vectors of another shape, as
// bytes. It needs the GIL.
template <class T>
nb::object items_of(ms::Call& call, const std::vector<ms::Message>& messages) {
  const ms::Header own = call.header(0);
  nb::list items;
  for (int rank = 0; rank < call.size(); ++rank) {
    const ms::Message& message = messages[static_cast<std::size_t>(rank)];
    if (ms::is_alike(message, own))
      items.append(result_of(call, ms::decode<T>(call, message, {rank, 0, own.blocks})));
    else
      items.append(nb::bytes(message.data(), message.size));
  }
  return items;
}

// Returns an array to which vectors of this shape are added.
template <class T>
ms::Shared sums_of(nb::handle out, std::uint32_t blocks, std::uint32_t block) {
  const ms::Shared sums = memory_of(out);
  require(sums->writable && sums->size == std::size_t{blocks} * block * sizeof(T),
          "allgather: out must be writable and have the size of the vector");
  return sums;
}

// Returns the vectors of all ranks by rank; other messages, and vectors of another shape, as
// bytes. The input is a message, or a sparse vector that is encoded here. If `out` is given and
// all vectors have one shape, they are added to it, and the result is None.
Returned run_allgather(MessageLoop& loop, nb::handle host, int code, std::uint32_t sequence,
                       bool traced, int dtype, std::uint32_t blocks, std::uint32_t block,
                       nb::handle message, nb::handle indices, nb::handle values,
                       nb::handle out) {
  require(block > 0, "allgather: block must be positive");
  return with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    ms::Message own;
    ms::Vector<T> x;
    if (message.is_none()) {
      x = vector_of<T>("allgather", blocks, block, indices, values);
    } else {
      const ms::Shared memory = memory_of(message);
      require(memory->size >= ms::header_bytes, "allgather: message must have a header");
      own = {memory, memory->size};
    }
    ms::Shared sums;
    if (!out.is_none()) sums = sums_of<T>(out, blocks, block);
    return loop.run(
        host, {code, sequence, traced}, dtype, blocks, block, 0, [&](ms::Call& call) {
          if (!own.memory) own = ms::encode(call, x, 0);
          call.channel.longest = ms::Channel::physical_memory();  // shapes may differ
          const auto messages = ms::allgather(call, own);
          call.finish();
          const bool adds =
              sums && ms::add_all(call, messages, reinterpret_cast<T*>(sums->data));
          nb::gil_scoped_acquire gil;
          if (adds) return nb::object(nb::none());
          return items_of<T>(call, messages);
        });
  });
}

}  // namespace

void register_gathers(nb::module_&, nb::class_<MessageLoop>& loop) {
  loop.def("allgather", run_allgather, "host"_a, "code"_a, "sequence"_a, "traced"_a, "dtype"_a,
           "blocks"_a, "block"_a, "message"_a.none(), "indices"_a.none(), "values"_a.none(),
           "out"_a.none(),
           "Gather or add the vectors of all ranks; return them and the counters.");
}
