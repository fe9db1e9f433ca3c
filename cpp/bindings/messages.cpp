#include <nanobind/nanobind.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>

#include "bindings/arrays.h"
#include "kernels/dense/dense.h"
#include "messages/collectives.h"
#include "messages/decode.h"
#include "messages/mpi_channel.h"

namespace ms = sparcml::messages;

namespace {

using Returned = nb::typed<nb::tuple, nb::any, nb::ellipsis>;  // the result and the counters

constexpr std::size_t large = 1 << 15;  // bytes; such memory comes from the pool in Python

// Memory of a Python object. It may end in a thread that does not hold the GIL.
class PythonMemory final : public ms::Memory {
 public:
  explicit PythonMemory(const Py_buffer& view)
      : Memory(static_cast<std::uint8_t*>(view.buf), static_cast<std::size_t>(view.len),
               !view.readonly),
        view_(view) {}
  ~PythonMemory() override {
    nb::gil_scoped_acquire gil;
    PyBuffer_Release(&view_);
  }
  nb::object owner() const { return nb::borrow(view_.obj); }

 private:
  Py_buffer view_;
};

ms::Shared memory_of(nb::handle object) {
  Py_buffer view;
  if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_SIMPLE)) throw nb::python_error();
  return std::make_shared<PythonMemory>(view);
}

// The part of a Python object that runs the calls; see collectives/compiled.py.
class PythonHost final : public ms::Host {
 public:
  PythonHost(nb::handle host, bool moves) : host_(host), moves_(moves) {}

  ms::Shared allocate(std::size_t size) override {
    if (size < large && !moves_) return std::make_shared<ms::HeapMemory>(size);
    nb::gil_scoped_acquire gil;
    return memory_of(host_.attr("allocate")(size));
  }
  void waiting(int peer, ms::Action action, double seconds) override {
    nb::gil_scoped_acquire gil;
    host_.attr("waiting")(peer, static_cast<int>(action), seconds);
  }
  void end_wait() override {
    nb::gil_scoped_acquire gil;
    host_.attr("end_wait")();
  }
  void read_control() override {
    nb::gil_scoped_acquire gil;
    host_.attr("read_control")();
  }
  void reject(ms::Reading reading, const ms::Message& message, int source, int round,
              std::size_t blocks) override {
    nb::gil_scoped_acquire gil;
    const nb::bytes bytes(message.data(), message.size);
    host_.attr("reject")(static_cast<int>(reading), bytes, source, round, blocks);
    throw std::runtime_error("a message was rejected that its definition accepts");
  }
  void lose(int code, int peer, ms::Action action) override {
    nb::gil_scoped_acquire gil;
    host_.attr("lose")(code, peer, static_cast<int>(action));
    throw std::runtime_error("the host must raise the error of a lost rank");
  }
  void send(int peer, const ms::Message& message, int round) override {
    nb::gil_scoped_acquire gil;
    host_.attr("send")(peer, owner(message.memory), message.size, round);
  }
  void expect(int peer) override {
    nb::gil_scoped_acquire gil;
    host_.attr("expect")(peer);
  }
  ms::Message receive(int peer) override {
    nb::gil_scoped_acquire gil;
    const ms::Shared memory = memory_of(host_.attr("receive")(peer));
    return {memory, memory->size};
  }
  void finish() override {
    nb::gil_scoped_acquire gil;
    host_.attr("finish")();
  }

  static nb::object owner(const ms::Shared& memory) {
    return static_cast<const PythonMemory&>(*memory).owner();
  }

 private:
  nb::handle host_;
  bool moves_;  // whether the host moves messages, which are then Python objects
};

// The identity of a call.
struct Identity {
  int code;
  std::uint32_t sequence;
  bool traced;
};

// The compiled collectives of one communicator.
class MessageLoop {
 public:
  MessageLoop(std::unique_ptr<ms::Channel> channel, bool moves)
      : channel_(std::move(channel)), moves_(moves) {}

  bool poll() { return channel_->poll(); }

  // Runs a collective without the GIL; after an error all messages are given up.
  template <class F>
  Returned run(nb::handle python, const Identity& id, int dtype, std::uint32_t blocks,
               std::uint32_t block, int op, F collective) {
    PythonHost host(python, moves_);
    ms::Call call{*channel_,
                  host,
                  static_cast<std::uint8_t>(id.code),
                  id.sequence,
                  static_cast<std::uint8_t>(dtype),
                  blocks,
                  block,
                  as_op(op)};
    call.counters.traced = id.traced;
    nb::object result;
    {
      nb::gil_scoped_release nogil;
      try {
        channel_->open(host);
        result = collective(call);
      } catch (...) {
        channel_->abandon();
        throw;
      }
    }
    const ms::Counters& c = call.counters;
    return nb::borrow<Returned>(nb::make_tuple(
        std::move(result), c.messages, c.bytes, c.received_messages, c.received_bytes,
        c.seconds[0], c.seconds[1], c.seconds[2], c.seconds[3], c.seconds[4], traced(c)));
  }

 private:
  static nb::object traced(const ms::Counters& counters) {
    if (!counters.traced) return nb::none();
    nb::list sent, events;
    for (const auto& [peer, nbytes] : counters.sent) sent.append(nb::make_tuple(peer, nbytes));
    for (const ms::Event& e : counters.events)
      events.append(nb::make_tuple(static_cast<int>(e.phase), e.start, e.end, e.round, e.peer,
                                   e.nbytes, e.nnz));
    return nb::make_tuple(sent, events);
  }

  std::unique_ptr<ms::Channel> channel_;
  const bool moves_;
};

// Returns the owner and the offset of an array in it; short arrays are copied.
nb::object array_of(const ms::Shared& memory, const void* data, std::size_t nbytes) {
  const auto* start = static_cast<const std::uint8_t*>(data);
  if (dynamic_cast<const PythonMemory*>(memory.get()))
    return nb::make_tuple(PythonHost::owner(memory), start - memory->data);
  return nb::make_tuple(nb::bytes(start, nbytes), 0);
}

template <class T>
nb::object result_of(const ms::Call& call, const ms::Vector<T>& x) {
  nb::gil_scoped_acquire gil;
  const std::size_t nbytes = x.nnz * call.block * sizeof(T);
  nb::object values = array_of(x.value_memory, x.values, nbytes);
  if (x.dense) return nb::make_tuple(x.nnz, nb::none(), values);
  const ms::Shared& memory = x.index_memory ? x.index_memory : x.value_memory;
  return nb::make_tuple(x.nnz, array_of(memory, x.indices, 4 * x.nnz), values);
}

template <class T>
nb::object allreduce(ms::Call& call, int algorithm, ms::Vector<T> x) {
  const auto run = [&] {
    switch (algorithm) {
      case 3:
        return ms::ssar_recursive_double(call, std::move(x));
      case 4:
        return ms::ssar_split_allgather(call, std::move(x));
      case 5:
        return ms::dsar_split_allgather(call, std::move(x));
      default:
        return ms::ssar_ring(call, std::move(x));
    }
  };
  const ms::Vector<T> result = run();
  call.finish();
  return result_of(call, result);
}

template <class T>
ms::Vector<T> vector_of(std::size_t blocks, std::size_t block, nb::handle indices,
                        nb::handle values) {
  ms::Vector<T> x;
  x.blocks = x.nnz = blocks;
  x.value_memory = memory_of(values);
  x.values = reinterpret_cast<const T*>(x.value_memory->data);
  x.dense = indices.is_none();
  if (!x.dense) {
    x.index_memory = memory_of(indices);
    x.indices = reinterpret_cast<const std::uint32_t*>(x.index_memory->data);
    x.nnz = x.index_memory->size / 4;
    require(sparcml::ascending_prefix(x.indices, x.nnz, static_cast<std::uint32_t>(blocks)) ==
                x.nnz,
            "allreduce: indices must ascend and be below the number of blocks");
  }
  require(x.value_memory->size == x.nnz * block * sizeof(T),
          "allreduce: values must have block values per index");
  return x;
}

// Returns the vector of a message that is shaped as `own` says, or else the message. It needs
// the GIL.
template <class T>
nb::object item_of(ms::Call& call, const ms::Message& message, const ms::Header& own,
                   int source) {
  const ms::Header h = ms::read_header(message.data());
  if (h.value_format != ms::raw_values || h.dtype != own.dtype || h.blocks != own.blocks ||
      h.block != own.block)
    return nb::bytes(message.data(), message.size);
  return result_of(call, ms::decode<T>(call, message, {source, 0, own.blocks}));
}

template <class F>
auto with_type(int dtype, F f) {
  switch (dtype) {
    case 1:
      return f(float{});
    case 2:
      return f(double{});
    case 3:
      return f(std::int32_t{});
    default:
      return f(std::int64_t{});
  }
}

Returned run_allreduce(MessageLoop& loop, nb::handle host, int code, std::uint32_t sequence,
                       bool traced, int algorithm, int op, int dtype, std::uint32_t blocks,
                       std::uint32_t block, nb::handle indices, nb::handle values) {
  require(block > 0, "allreduce: block must be positive");
  return with_type(dtype, [&](auto zero) {
    auto x = vector_of<decltype(zero)>(blocks, block, indices, values);
    return loop.run(host, {code, sequence, traced}, dtype, blocks, block, op,
                    [&](ms::Call& call) { return allreduce(call, algorithm, std::move(x)); });
  });
}

Returned run_barrier(MessageLoop& loop, nb::handle host, int code, std::uint32_t sequence,
                     bool traced, int dtype) {
  return loop.run(host, {code, sequence, traced}, dtype, 0, 1, 0, [](ms::Call& call) {
    ms::barrier(call);
    call.finish();
    nb::gil_scoped_acquire gil;
    return nb::object(nb::none());
  });
}

// The header that describes this rank's vector.
ms::Header description(const ms::Call& call, int round, std::uint32_t nnz) {
  ms::Header own = call.header(round);
  own.value_format = ms::no_values;
  own.nnz = nnz;
  return own;
}

// Returns whether all ranks have vectors of the same shape and the same round.
bool same(const std::vector<ms::Header>& headers, const ms::Header& own) {
  return std::all_of(headers.begin(), headers.end(), [&](const ms::Header& h) {
    return h.dtype == own.dtype && h.blocks == own.blocks && h.block == own.block &&
           h.round == own.round;
  });
}

Returned run_agree(MessageLoop& loop, nb::handle host, int code, std::uint32_t sequence,
                   bool traced, int round, int dtype, std::uint32_t blocks, std::uint32_t block,
                   std::uint32_t nnz) {
  return loop.run(host, {code, sequence, traced}, dtype, blocks, block, 0, [&](ms::Call& call) {
    const ms::Header own = description(call, round, nnz);
    const auto headers = ms::agree(call, own);
    call.finish();
    nb::gil_scoped_acquire gil;
    if (!same(headers, own))
      return nb::object(nb::bytes(headers.data(), headers.size() * ms::header_bytes));
    nb::list counts;
    for (const ms::Header& h : headers) counts.append(h.nnz);
    return nb::object(nb::tuple(counts));
  });
}

// Returns the vectors of all ranks by rank, given this rank's message; other messages, and
// vectors of another shape, as bytes.
Returned run_allgather(MessageLoop& loop, nb::handle host, int code, std::uint32_t sequence,
                       bool traced, int dtype, std::uint32_t blocks, std::uint32_t block,
                       nb::handle message) {
  const ms::Shared memory = memory_of(message);
  require(memory->size >= ms::header_bytes, "allgather: message must have a header");
  require(block > 0, "allgather: block must be positive");
  return loop.run(host, {code, sequence, traced}, dtype, blocks, block, 0, [&](ms::Call& call) {
    const auto messages = ms::allgather(call, {memory, memory->size});
    call.finish();
    nb::gil_scoped_acquire gil;
    nb::list found;
    const ms::Header own = call.header(0);
    for (int rank = 0; rank < call.size(); ++rank)
      found.append(with_type(dtype, [&](auto zero) {
        return item_of<decltype(zero)>(call, messages[static_cast<std::size_t>(rank)], own,
                                       rank);
      }));
    return nb::object(std::move(found));
  });
}

// Returns whether the result has a NaN, and the counters. With a code of an agreement, the
// ranks exchange headers first; if these differ, they are the result, and nothing is reduced.
Returned run_native(MessageLoop& loop, nb::handle host, int agreement, std::uint32_t sequence,
                    bool traced, int dtype, std::uint32_t blocks, std::uint32_t block,
                    std::uint64_t type, std::uint64_t op, nb::handle values, nb::handle out) {
  const ms::Shared from = memory_of(values), to = memory_of(out);
  require(from->size == to->size && to->writable,
          "native: out must be writable and have the size of values");
  const std::size_t item = with_type(dtype, [](auto zero) { return sizeof zero; });
  const ms::NativeCall native{from->data, to->data, from->size / item, item, type, op};
  bool found = false;
  const Identity id{std::max(agreement, 0), sequence, traced};
  return loop.run(host, id, dtype, blocks, block, 0, [&](ms::Call& call) {
    if (agreement >= 0) {
      const ms::Header own = description(call, 0, blocks);
      const auto headers = ms::agree(call, own);
      call.finish();
      if (!same(headers, own)) {
        nb::gil_scoped_acquire gil;
        return nb::object(nb::bytes(headers.data(), headers.size() * ms::header_bytes));
      }
    }
    {
      ms::Timer timer(call, ms::wait_phase);
      call.channel.native(call.host, native, [&](std::size_t start, std::size_t count) {
        const std::uint8_t* part = native.out + start * item;
        if (dtype == 1) found |= sparcml::has_nan(reinterpret_cast<const float*>(part), count);
        if (dtype == 2) found |= sparcml::has_nan(reinterpret_cast<const double*>(part), count);
      });
    }
    nb::gil_scoped_acquire gil;
    return nb::object(nb::bool_(found));
  });
}

template <class Handle>
std::unique_ptr<MessageLoop> mpi_loop(int rank, int size, const std::vector<std::size_t>& at,
                                      const std::vector<std::size_t>& handles, int any_source,
                                      int any_tag, std::size_t tag_at,
                                      std::size_t segment_bytes, const ms::WaitPolicy& policy) {
  ms::MpiFunctions<Handle> mpi;
  static_assert(sizeof mpi == 8 * sizeof(std::size_t));
  std::memcpy(&mpi, at.data(), sizeof mpi);
  const auto handle = [&](std::size_t i) {
    Handle h;
    std::memcpy(&h, &handles[i], sizeof h);
    return h;
  };
  const ms::MpiSettings<Handle> settings{handle(0), handle(1), handle(2),    any_source,
                                         any_tag,   tag_at,    segment_bytes};
  return std::make_unique<MessageLoop>(
      std::make_unique<ms::MpiChannel<Handle>>(rank, size, mpi, settings, policy), false);
}

}  // namespace

void register_messages(nb::module_& m) {
  nb::class_<MessageLoop> loop(m, "MessageLoop",
                               "Collectives whose rounds run without the GIL.");
  loop.def("poll", &MessageLoop::poll,
           "Make progress in the current wait; return whether over.")
      .def("allreduce", run_allreduce, "host"_a, "code"_a, "sequence"_a, "traced"_a,
           "algorithm"_a, "op"_a, "dtype"_a, "blocks"_a, "block"_a, "indices"_a.none(),
           "values"_a, "Reduce a vector; return the result and the counters.")
      .def("barrier", run_barrier, "host"_a, "code"_a, "sequence"_a, "traced"_a, "dtype"_a,
           "Wait for all ranks; return the counters.")
      .def("agree", run_agree, "host"_a, "code"_a, "sequence"_a, "traced"_a, "round"_a,
           "dtype"_a, "blocks"_a, "block"_a, "nnz"_a,
           "Return the nnz of all ranks, or their headers if they differ, and the counters.");
  loop.def("allgather", run_allgather, "host"_a, "code"_a, "sequence"_a, "traced"_a, "dtype"_a,
           "blocks"_a, "block"_a, "message"_a,
           "Gather the vectors or messages of all ranks; return them and the counters.");
  loop.def("native", run_native, "host"_a, "agreement"_a, "sequence"_a, "traced"_a, "dtype"_a,
           "blocks"_a, "block"_a, "type"_a, "op"_a, "values"_a, "out"_a,
           "Run the engine's allreduce; return whether there is a NaN, and the counters.");
  m.def(
      "host_loop",
      [](int rank, int size) {
        return std::make_unique<MessageLoop>(std::make_unique<ms::HostChannel>(rank, size),
                                             true);
      },
      "rank"_a, "size"_a, "Return a loop whose messages the host moves.");
  m.def(
      "mpi_loop",
      [](int rank, int size, int handle_bytes, std::vector<std::size_t> functions,
         std::vector<std::size_t> handles, int any_source, int any_tag, std::size_t tag_at,
         std::size_t segment_bytes, double spin, double give_way) {
        require(functions.size() == 8 && handles.size() == 3,
                "mpi_loop: there must be 8 functions and 3 handles");
        require(handle_bytes == 4 || handle_bytes == 8,
                "mpi_loop: handles must have 4 or 8 bytes");
        const ms::WaitPolicy policy{spin, give_way};
        const auto make = handle_bytes == 4 ? mpi_loop<std::int32_t> : mpi_loop<void*>;
        return make(rank, size, functions, handles, any_source, any_tag, tag_at, segment_bytes,
                    policy);
      },
      "rank"_a, "size"_a, "handle_bytes"_a, "functions"_a, "handles"_a, "any_source"_a,
      "any_tag"_a, "tag_at"_a, "segment_bytes"_a, "spin"_a, "give_way"_a,
      "Return a loop over functions of an MPI library, given by their addresses.");
}
