// The program around the compiled collectives: a Python object.
#pragma once

#include "bindings/arrays.h"
#include "bindings/message_memory.h"
#include "messages/channel.h"

// Calls the functions of the object in one call, see collectives/compiled.py.
class PythonHost final : public ms::Host {
 public:
  PythonHost(nb::handle host, bool moves) : host_(host), moves_(moves) {}

  // Whether a function was called that describes the call for errors.
  bool has_described() const { return has_described_; }

  ms::Shared allocate(std::size_t size) override {
    if (size < medium && !moves_) return std::make_shared<ms::HeapMemory>(size);
    if (size < large && !moves_) return std::make_shared<ms::BlockMemory>(size);
    nb::gil_scoped_acquire gil;
    return memory_of(host_.attr("allocate")(size), size);
  }
  void waiting(int peer, ms::Action action, double seconds) override {
    nb::gil_scoped_acquire gil;
    describing().attr("waiting")(peer, static_cast<int>(action), seconds);
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
    describing().attr("reject")(static_cast<int>(reading), bytes, source, round, blocks);
    throw std::runtime_error("a message was rejected that its definition accepts");
  }
  void lose(int code, int peer, ms::Action action) override {
    nb::gil_scoped_acquire gil;
    describing().attr("lose")(code, peer, static_cast<int>(action));
    throw std::runtime_error("the host must raise the error of a lost rank");
  }
  void send(int peer, const ms::Message& message, int round) override {
    nb::gil_scoped_acquire gil;
    const auto& memory = static_cast<const PythonMemory&>(*message.memory);
    describing().attr("send")(peer, memory.owner(), message.size, round);
  }
  void expect(int peer) override {
    nb::gil_scoped_acquire gil;
    host_.attr("expect")(peer);
  }
  ms::Message receive(int peer) override {
    nb::gil_scoped_acquire gil;
    const ms::Shared memory = memory_of(describing().attr("receive")(peer));
    return {memory, memory->size};
  }
  void finish() override {
    nb::gil_scoped_acquire gil;
    host_.attr("finish")();
  }

 private:
  nb::handle describing() {
    has_described_ = true;
    return host_;
  }

  nb::handle host_;
  bool moves_;  // whether the host moves messages, which are then Python objects
  bool has_described_ = false;
};
