// The compiled collectives of a communicator, and the Python object that runs their calls.
#pragma once

#include "bindings/arrays.h"
#include "bindings/message_memory.h"
#include "kernels/ascending/ascending.h"
#include "messages/collectives.h"

using Returned = nb::typed<nb::tuple, nb::any, nb::ellipsis>;  // the result and the counters

// The part of a Python object that runs the calls; see collectives/compiled.py.
class PythonHost final : public ms::Host {
 public:
  PythonHost(nb::handle host, bool moves) : host_(host), moves_(moves) {}

  // Describes the call to the object before it calls one of its functions.
  PythonHost(nb::handle host, bool moves, std::function<nb::object()> description)
      : host_(host), moves_(moves), description_(std::move(description)) {}

  bool was_described() const { return was_described_; }

  ms::Shared allocate(std::size_t size) override {
    if (size < medium && !moves_) return std::make_shared<ms::HeapMemory>(size);
    if (size < large && !moves_) return std::make_shared<ms::BlockMemory>(size);
    nb::gil_scoped_acquire gil;
    return memory_of(host_.attr("allocate")(size));
  }
  void waiting(int peer, ms::Action action, double seconds) override {
    nb::gil_scoped_acquire gil;
    host().attr("waiting")(peer, static_cast<int>(action), seconds);
  }
  void end_wait() override {
    nb::gil_scoped_acquire gil;
    host().attr("end_wait")();
  }
  void read_control() override {
    nb::gil_scoped_acquire gil;
    host().attr("read_control")();
  }
  void reject(ms::Reading reading, const ms::Message& message, int source, int round,
              std::size_t blocks) override {
    nb::gil_scoped_acquire gil;
    const nb::bytes bytes(message.data(), message.size);
    host().attr("reject")(static_cast<int>(reading), bytes, source, round, blocks);
    throw std::runtime_error("a message was rejected that its definition accepts");
  }
  void lose(int code, int peer, ms::Action action) override {
    nb::gil_scoped_acquire gil;
    host().attr("lose")(code, peer, static_cast<int>(action));
    throw std::runtime_error("the host must raise the error of a lost rank");
  }
  void send(int peer, const ms::Message& message, int round) override {
    nb::gil_scoped_acquire gil;
    const auto& memory = static_cast<const PythonMemory&>(*message.memory);
    host().attr("send")(peer, memory.owner(), message.size, round);
  }
  void expect(int peer) override {
    nb::gil_scoped_acquire gil;
    host().attr("expect")(peer);
  }
  ms::Message receive(int peer) override {
    nb::gil_scoped_acquire gil;
    const ms::Shared memory = memory_of(host().attr("receive")(peer));
    return {memory, memory->size};
  }
  void finish() override {
    nb::gil_scoped_acquire gil;
    host().attr("finish")();
  }

 private:
  // Returns the object; it needs the GIL.
  nb::handle host() {
    if (description_ && !was_described_) {
      was_described_ = true;
      host_.attr("current") = description_();
    }
    return host_;
  }

  nb::handle host_;
  bool moves_;  // whether the host moves messages, which are then Python objects
  std::function<nb::object()> description_;
  bool was_described_ = false;
};

// The identity of a call.
struct Identity {
  int code;
  std::uint32_t sequence;
  bool traced;
  const ms::Quantization* quantization = nullptr;
};

// The compiled collectives of one communicator.
class MessageLoop {
 public:
  MessageLoop(std::unique_ptr<ms::Channel> channel, bool moves)
      : channel_(std::move(channel)), moves_(moves) {}

  bool poll() { return channel_->poll(); }

  bool moves() const { return moves_; }

  // Runs a collective without the GIL; after an error all messages are given up.
  template <class F>
  auto execute(PythonHost& host, ms::Call& call, F collective) {
    nb::gil_scoped_release nogil;
    try {
      channel_->longest = call.longest_message();
      channel_->open(host);
      return collective(call);
    } catch (...) {
      channel_->abandon();
      throw;
    }
  }

  ms::Call call(PythonHost& host, const Identity& id, int dtype, std::uint32_t blocks,
                std::uint32_t block, int op) {
    ms::Call call{*channel_,
                  host,
                  static_cast<std::uint8_t>(id.code),
                  id.sequence,
                  static_cast<std::uint8_t>(dtype),
                  blocks,
                  block,
                  as_op(op),
                  id.quantization};
    call.counters.traced = id.traced;
    return call;
  }

  // Runs a collective that makes its result with the GIL; returns it and the counters.
  template <class F>
  Returned run(nb::handle python, const Identity& id, int dtype, std::uint32_t blocks,
               std::uint32_t block, int op, F collective) {
    PythonHost host(python, moves_);
    ms::Call call = this->call(host, id, dtype, blocks, block, op);
    nb::object result = execute(host, call, collective);
    return returned(std::move(result), call.counters);
  }

  static Returned returned(nb::object result, const ms::Counters& c) {
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

// Returns this rank's vector. `function` begins the messages of errors.
template <class T>
ms::Vector<T> vector_of(const std::string& function, std::size_t blocks, std::size_t block,
                        nb::handle indices, nb::handle values) {
  ms::Vector<T> x;
  x.blocks = x.nnz = blocks;
  x.value_memory = memory_of(values);
  x.values = reinterpret_cast<const T*>(x.value_memory->data);
  x.dense = indices.is_none();
  if (!x.dense) {
    x.index_memory = memory_of(indices);
    x.indices = reinterpret_cast<const std::uint32_t*>(x.index_memory->data);
    x.nnz = x.index_memory->size / 4;
    if (sparcml::ascending_prefix(x.indices, x.nnz, static_cast<std::uint32_t>(blocks)) !=
        x.nnz)
      throw nb::value_error(
          (function + ": indices must ascend and be below the number of blocks").c_str());
  }
  if (x.value_memory->size != x.nnz * block * sizeof(T))
    throw nb::value_error((function + ": values must have block values per index").c_str());
  return x;
}

// The header that describes this rank's vector.
inline ms::Header description(const ms::Call& call, int round, std::uint32_t nnz) {
  ms::Header own = call.header(round);
  own.value_format = ms::no_values;
  own.nnz = nnz;
  return own;
}

// Returns whether all ranks have vectors of the same shape and the same round.
inline bool same(const std::vector<ms::Header>& headers, const ms::Header& own) {
  return std::all_of(headers.begin(), headers.end(), [&](const ms::Header& h) {
    return h.dtype == own.dtype && h.blocks == own.blocks && h.block == own.block &&
           h.round == own.round;
  });
}

// Adds allgathers to the class of the loop, and the class of vectors that are computed.
void register_gathers(nb::module_& m, nb::class_<MessageLoop>& loop);

// Adds allreduces to the class of the loop.
void register_reductions(nb::class_<MessageLoop>& loop);
