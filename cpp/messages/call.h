// One collective call on one rank: its identity, its messages and its counters.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include "kernels/op.h"
#include "messages/channel.h"
#include "messages/header.h"
#include "messages/quantization.h"

namespace sparcml::messages {

enum Phase : int { encode_phase, send_phase, wait_phase, decode_phase, add_phase, phases };

inline double now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

// An event of the trace; -1 stands for a field without a value.
struct Event {
  Phase phase;
  double start, end;
  std::int64_t round, peer, nbytes, nnz;
};

struct Counters {
  std::int64_t messages = 0, bytes = 0, received_messages = 0, received_bytes = 0;
  std::array<double, phases> seconds{};
  bool traced = false;
  std::vector<std::pair<int, std::int64_t>> sent;  // peer and bytes of each message
  std::vector<Event> events;

  // Adds what another call has counted, but for its trace.
  void add(const Counters& c) {
    messages += c.messages, bytes += c.bytes;
    received_messages += c.received_messages, received_bytes += c.received_bytes;
    for (int phase = 0; phase < phases; ++phase) seconds[phase] += c.seconds[phase];
  }
};

// Returns the bits of the value of absent entries. For sums it is +0.0, unlike identity() in
// op.h.
template <class T>
std::uint64_t fill_bits(Op op) {
  return with_op(op, [](auto o) -> std::uint64_t {
    constexpr Op operation = decltype(o)::value;
    return operation == Op::sum ? 0 : bits(identity<operation, T>());
  });
}
inline std::uint64_t fill_bits(int dtype, Op op) {
  return dtype == 1   ? fill_bits<float>(op)
         : dtype == 2 ? fill_bits<double>(op)
         : dtype == 3 ? fill_bits<std::int32_t>(op)
                      : fill_bits<std::int64_t>(op);
}

struct Call : VectorContext {
  Call(Channel& channel, Host& host, std::uint8_t code, std::uint32_t sequence,
       std::uint8_t dtype, std::uint32_t blocks, std::uint32_t block, Op op,
       const Quantization* quantization = nullptr)
      : VectorContext{host, block, fill_bits(dtype, op)},
        channel(channel),
        host(host),
        code(code),
        sequence(sequence),
        dtype(dtype),
        blocks(blocks),
        op(op),
        quantization(quantization) {}

  Channel& channel;
  Host& host;
  std::uint8_t code;  // of the collective and the operation
  std::uint32_t sequence;
  std::uint8_t dtype;
  std::uint32_t blocks;  // of the full vector
  Op op;
  const Quantization* quantization;  // of the values of messages
  Counters counters{};

  // Bytes of the longest message: of all ranks' vectors with the shape of this one's. Codes
  // of values are at most as long as the values, but for their settings.
  std::size_t longest_message() const {
    const std::size_t item = dtype == 2 || dtype == 4 ? 8 : 4;
    const std::size_t vector = 4096 + 2 * item * blocks * block;
    return std::min(static_cast<std::size_t>(size()) * vector, Channel::physical_memory());
  }

  int rank() const { return channel.rank; }
  int size() const { return channel.size; }

  Header header(int round) const {
    Header h;
    h.call = code, h.sequence = sequence, h.dtype = dtype;
    h.round = static_cast<std::uint8_t>(round);
    h.blocks = blocks, h.block = block;
    return h;
  }

  // Returns the format of values for one rank, or of a sum for all of them.
  ValueFormat values_for(int owner, int round) const {
    if (!quantization) return {};
    return {&quantization->own, quantization->message_seed(rank(), owner, round)};
  }
  ValueFormat reduced_values(int round) const {
    if (!quantization) return {};
    return {&quantization->reduced, quantization->message_seed(rank(), rank(), round)};
  }

  // Returns the message, in other memory if it does not begin at a word.
  Message aligned(const Message& message) {
    if (is_aligned(message.data())) return message;
    const Message copy{host.allocate(message.size), message.size};
    std::memcpy(copy.data(), message.data(), message.size);
    return copy;
  }

  void send(int peer, const Message& message, int round);
  Message receive(int peer, int round);
  void finish();
};

// Adds the time of its block to a phase.
class Timer {
 public:
  Timer(Call& call, Phase phase, std::int64_t round = -1, std::int64_t nnz = -1,
        std::int64_t peer = -1, std::int64_t nbytes = -1)
      : nbytes(nbytes), call_(call), event_{phase, now(), 0, round, peer, -1, nnz} {}
  ~Timer() {
    event_.end = now(), event_.nbytes = nbytes;
    call_.counters.seconds[event_.phase] += event_.end - event_.start;
    if (call_.counters.traced) call_.counters.events.push_back(event_);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  std::int64_t nbytes;

 private:
  Call& call_;
  Event event_;
};

inline void Call::send(int peer, const Message& message, int round) {
  const auto nbytes = static_cast<std::int64_t>(message.size);
  ++counters.messages, counters.bytes += nbytes;
  if (counters.traced) counters.sent.emplace_back(peer, nbytes);
  Timer timer(*this, send_phase, round, -1, peer, nbytes);
  channel.send(host, peer, message, round);
}

inline Message Call::receive(int peer, int round) {
  Timer timer(*this, wait_phase, round, -1, peer);
  Message message = aligned(channel.receive(host, peer));
  timer.nbytes = static_cast<std::int64_t>(message.size);
  ++counters.received_messages, counters.received_bytes += timer.nbytes;
  return message;
}

inline void Call::finish() {
  Timer timer(*this, wait_phase);
  channel.finish(host);
}

}  // namespace sparcml::messages
