#include "messages/add.h"
#include "messages/collectives.h"
#include "messages/decode.h"
#include "messages/encode.h"
#include "messages/join_messages.h"

namespace sparcml::messages {

constexpr int window = 8;  // messages in flight per rank in the second half

// Expects a message of each other rank.
static void begin_exchange(Call& call) {
  const int P = call.size();
  call.channel.begin_exchange();
  for (int step = 1; step < P; ++step)
    call.channel.expect(call.host, (call.rank() - step + P) % P);
}

// Sends each range to its owner, and returns all ranks' parts of this rank's range.
template <class T>
static std::vector<Vector<T>> scatter_ranges(Call& call, const Vector<T>& x,
                                             const std::vector<std::size_t>& offsets,
                                             Seen<T>* seen) {
  const int P = call.size(), me = call.rank();
  if (seen) seen->parts.resize(static_cast<std::size_t>(P));
  begin_exchange(call);
  const auto part = [&](int j) { return part_of(call, x, offsets[j], offsets[j + 1]); };
  for (int step = 1; step < P; ++step) {
    const int owner = (me + step) % P;
    Vector<T> sent = part(owner);
    const Message message = encode(call, sent, 0, call.values_for(owner, 0));
    call.send(owner, message, 0);
    if (seen) seen->parts[owner] = read<T>(call, message, {me, 0, sent.blocks});
  }
  std::vector<Vector<T>> parts(static_cast<std::size_t>(P));
  parts[me] = part(me);
  parts[me].scratch = false;
  if (seen) seen->parts[me] = parts[me];
  for (int step = 1; step < P; ++step) {
    const int source = (me - step + P) % P;
    parts[source] = decode<T>(call, call.receive(source, 0), {source, 0, parts[me].blocks});
  }
  return parts;
}

// Encodes this rank's reduced range for all ranks.
template <class T>
static Message encode_range(Call& call, Vector<T>& reduced, Seen<T>* seen) {
  const Message message = encode(call, reduced, 1, call.reduced_values(1));
  if (seen) {
    seen->reduced = reduced;
    seen->decoded = read<T>(call, message, {call.rank(), 1, reduced.blocks});
  }
  return message;
}

// Sends a message to all ranks, and calls `take` with (rank, message) of all ranks.
template <class Take>
static void gather_messages(Call& call, const Message& own, Take take) {
  const int P = call.size(), me = call.rank();
  begin_exchange(call);
  for (int step = 1; step < std::min(window, P); ++step) call.send((me + step) % P, own, 1);
  take(me, own);
  for (int step = window; step < P + window - 1; ++step) {
    if (step < P) call.send((me + step) % P, own, 1);
    const int source = (me - (step - window + 1) + P) % P;
    take(source, call.receive(source, 1));
  }
}

template <class T>
Vector<T> ssar_split_allgather(Call& call, Vector<T> x, Seen<T>* seen) {
  const auto offsets = range_offsets(x.blocks, call.size());
  Vector<T> reduced = add_many(call, scatter_ranges(call, x, offsets, seen));
  std::vector<Message> messages(static_cast<std::size_t>(call.size()));
  gather_messages(call, encode_range(call, reduced, seen),
                  [&](int rank, const Message& message) { messages[rank] = message; });
  call.finish();  // messages make no progress while this rank computes
  return join_messages<T>(call, messages, 1, offsets);
}

template <class T>
Vector<T> dsar_split_allgather(Call& call, Vector<T> x, Seen<T>* seen) {
  const auto offsets = range_offsets(x.blocks, call.size());
  const auto parts = scatter_ranges(call, x, offsets, seen);
  Vector<T> reduced = add_to_filled(call, parts);
  const Message own = encode_range(call, reduced, seen);
  Vector<T> out = empty_dense<T>(call, x.blocks);
  gather_messages(call, own, [&](int rank, const Message& message) {
    const std::size_t span = offsets[rank + 1] - offsets[rank];
    decode_into(call, message, {rank, 1, span}, out.writable() + offsets[rank] * call.block);
  });
  return out;
}

SPARCML_SPLIT_FOR_ALL_TYPES(ssar_split_allgather)
SPARCML_SPLIT_FOR_ALL_TYPES(dsar_split_allgather)

}  // namespace sparcml::messages
