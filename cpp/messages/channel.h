// What moves the messages of a call, and what the loop asks of the program around it.
#pragma once

#include <unistd.h>

#include <functional>
#include <stdexcept>

#include "kernels/op.h"
#include "messages/memory.h"

namespace sparcml::messages {

// How a received message is read; the program repeats the checks of one that is rejected.
enum class Reading : int { vector, header, bundle };

// What a rank waits for.
enum class Action : int { receive, send, native };

// The program around the loop. Its functions may throw, which ends the call.
class Host : public Allocator {
 public:
  // Called in a wait if control messages have arrived, and every 10 milliseconds; end_wait()
  // once after a wait that called it.
  virtual void waiting(int peer, Action action, double seconds) = 0;
  virtual void end_wait() = 0;

  // Called if control messages have arrived.
  virtual void read_control() = 0;

  // Raises the error of a message that the loop cannot read.
  [[noreturn]] virtual void reject(Reading reading, const Message& message, int source,
                                   int round, std::size_t blocks) = 0;

  // Raises the error of a failed function of the engine.
  [[noreturn]] virtual void lose(int code, int peer, Action action) = 0;

  // Moves messages for engines without functions of their own.
  virtual void send(int peer, const Message& message, int round) = 0;
  virtual void expect(int peer) = 0;
  virtual Message receive(int peer) = 0;
  virtual void finish() = 0;
};

// Arguments of an engine's own allreduce.
struct NativeCall {
  const std::uint8_t* in;
  std::uint8_t* out;
  std::size_t count, item_bytes;
  int dtype;  // its number in headers
  Op op;
};

// Ordered messages between this rank and its peers, without tags.
class Channel {
 public:
  Channel(int rank, int size) : rank(rank), size(size) {}
  virtual ~Channel() = default;

  // Begins a call.
  virtual void open(Host& host) = 0;

  // Begins an exchange in which each rank sends a message to each other rank, none of which
  // depends on another. Announce what is received before the first message is sent.
  virtual void begin_exchange() {}

  virtual void send(Host& host, int peer, const Message& message, int round) = 0;

  // Announces a message that receive() will return; all announced ones make progress in waits.
  virtual void expect(Host& host, int peer) = 0;
  virtual Message receive(Host& host, int peer) = 0;

  // Waits until all messages have been sent.
  virtual void finish(Host& host) = 0;

  // Calls the engine's own allreduce of a vector, in the order of its elements; `done` is
  // called with each part that is complete.
  virtual void native(Host&, const NativeCall&,
                      const std::function<void(std::size_t, std::size_t)>&) {
    throw std::logic_error("this engine has no allreduce for the compiled loop");
  }

  // Gives up all messages after an error; their memory is never freed.
  virtual void abandon() = 0;

  // Makes progress in the current wait; returns whether it is over.
  virtual bool poll() = 0;

  const int rank, size;

  // Bytes of the longest message that the current call may receive.
  std::size_t longest = physical_memory();

  // A limit for calls to which each rank may contribute a vector of another size.
  static std::size_t physical_memory() {
    static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
                              static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return bytes;  // asking the system takes a seventh of a short sum
  }
};

// Messages that the host moves.
class HostChannel final : public Channel {
 public:
  using Channel::Channel;
  void open(Host& host) override { host.read_control(); }
  void send(Host& host, int peer, const Message& message, int round) override {
    host.send(peer, message, round);
  }
  void expect(Host& host, int peer) override { host.expect(peer); }
  Message receive(Host& host, int peer) override { return host.receive(peer); }
  void finish(Host& host) override { host.finish(); }
  void abandon() override {}
  bool poll() override { return true; }
};

}  // namespace sparcml::messages
