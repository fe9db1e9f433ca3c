#include "bindings/compiled_calls.h"
#include "messages/allgather_add.h"
#include "messages/encode.h"

namespace {

// The header that describes this rank's vector.
ms::Header description(const ms::Call& call, int round, std::size_t nnz) {
  ms::Header own = call.header(round);
  own.value_format = ms::no_values;
  own.nnz = static_cast<std::uint32_t>(nnz);
  return own;
}

// Returns whether all ranks have vectors of the same shape and the same round.
bool same(const std::vector<ms::Header>& headers, const ms::Header& own) {
  return std::all_of(headers.begin(), headers.end(), [&](const ms::Header& h) {
    return h.dtype == own.dtype && h.blocks == own.blocks && h.block == own.block &&
           h.round == own.round;
  });
}

}  // namespace

void CompiledCalls::barrier(const Identity& id) {
  in_call(id, nb::none(), nb::none(), [&](PythonHost& host) {
    return execute(host, id, {1, 0, 1}, nullptr, [](ms::Call& call) {
      ms::barrier(call);
      call.finish();
      return true;
    });
  });
}

nb::object CompiledCalls::agree(const Identity& id, nb::handle x, nb::handle quantizer,
                                int round) {
  const Operand operand = streams_.read_known(x);
  return agree(id, operand.shape, x, quantizer, round, operand.nnz());
}

nb::object CompiledCalls::agree(const Identity& id, const Shape& shape, nb::handle x,
                                nb::handle quantizer, int round, std::size_t nnz) {
  return in_call(id, x, quantizer, [&](PythonHost& host) {
    bool is_same = false;
    const auto headers = execute(host, id, shape, nullptr, [&](ms::Call& call) {
      const ms::Header own = description(call, round, nnz);
      auto all = ms::agree(call, own);
      call.finish();
      is_same = same(all, own);
      return all;
    });
    if (!is_same)
      return host_.attr("resolve")(
          nb::bytes(headers.data(), headers.size() * ms::header_bytes));
    nb::list counts;
    for (const ms::Header& h : headers) counts.append(h.nnz);
    return nb::object(nb::tuple(counts));
  });
}

nb::object CompiledCalls::allgather(const Identity& id, nb::handle x, nb::handle described,
                                    nb::handle out) {
  const Operand operand = streams_.read_known(described);
  const Shape& shape = operand.shape;
  return with_type(shape.dtype, [&](auto zero) {
    using T = decltype(zero);
    ms::Shared sums;
    if (!out.is_none()) {
      sums = memory_of(out);
      require(sums->writable && sums->size == shape.blocks * shape.entry_bytes(),
              "allgather: out must be writable and have the size of the vector");
    }
    return in_call(id, nb::none(), nb::none(), [&](PythonHost& host) {
      ms::Message own;
      ms::Vector<T> vector;
      if (x.is(described) && !operand.is_dense() && nb::cast<double>(operand.fill) == 0) {
        vector = operand.vector<T>("allgather");
      } else {
        const ms::Shared memory = memory_of(host_.attr("encode")(x));
        own = {memory, memory->size};
      }
      std::vector<std::optional<ms::Vector<T>>> vectors;  // of this shape
      bool is_added = false;
      const auto messages = execute(host, id, shape, nullptr, [&](ms::Call& call) {
        if (!own.memory) own = ms::encode(call, vector, 0);
        call.channel.longest = ms::Channel::physical_memory();  // shapes may differ
        auto all = ms::allgather(call, own);
        call.finish();
        is_added = sums && ms::add_all(call, all, reinterpret_cast<T*>(sums->data));
        for (int rank = 0; rank < call.size() && !is_added; ++rank) {
          const ms::Message& message = all[static_cast<std::size_t>(rank)];
          vectors.emplace_back();
          if (ms::is_alike(message, call.header(0)))
            vectors.back() = ms::decode<T>(call, message, {rank, 0, call.blocks});
        }
        return all;
      });
      if (is_added) return nb::object(nb::none());
      nb::list items;
      for (std::size_t rank = 0; rank < vectors.size(); ++rank) {
        const ms::Message& message = messages[rank];
        if (vectors[rank])
          items.append(streams_.make(shape, *vectors[rank], operand.fill, true));
        else
          items.append(host_.attr("decode")(nb::bytes(message.data(), message.size), rank));
      }
      return nb::object(items);
    });
  });
}

void register_gathers(nb::class_<CompiledCalls>& calls) {
  const auto agree =
      nb::overload_cast<const Identity&, nb::handle, nb::handle, int>(&CompiledCalls::agree);
  calls.def("barrier", &CompiledCalls::barrier, "identity"_a, "Wait for all ranks.")
      .def("agree", agree, "identity"_a, "x"_a, "quantizer"_a.none(), "round"_a,
           nb::sig("def agree(self, identity: CallIdentity, x: object, quantizer: object, "
                   "round: int) -> typing.Any"),
           "Return the nnz of all ranks, or what the host makes of headers that differ.")
      .def("allgather", &CompiledCalls::allgather, "identity"_a, "x"_a, "described"_a,
           "out"_a.none(),
           nb::sig("def allgather(self, identity: CallIdentity, x: object, described: object, "
                   "out: object) -> typing.Any"),
           "Return the vectors and numbers of all ranks, or add vectors to out. The shape of x "
           "in the header is that of `described`.");
}
