#include "messages/add.h"
#include "messages/collectives.h"
#include "messages/decode.h"
#include "messages/encode.h"
#include "messages/ranges.h"

namespace sparcml::messages {

template <class T>
Vector<T> ssar_ring(Call& call, Vector<T> x) {
  const int P = call.size(), me = call.rank();
  const int left = (me - 1 + P) % P, right = (me + 1) % P, first = P - 1;
  const auto offsets = range_offsets(x.blocks, P);
  const auto span = [&](int j) { return offsets[j + 1] - offsets[j]; };

  // Reduce-scatter.
  Vector<T> reduced = part_of(call, x, offsets[me], offsets[me + 1]);
  call.send(right, encode(call, reduced, 0), 0);
  for (int round = 0; round < P - 1; ++round) {
    const int j = (left - round + P) % P;
    const Vector<T> theirs = decode<T>(call, call.receive(left, round), {left, round, span(j)});
    reduced = add(call, theirs, part_of(call, x, offsets[j], offsets[j + 1]));
    if (round < P - 2) call.send(right, encode(call, reduced, round + 1), round + 1);
  }

  // Allgather. All ranks decode the same bytes, the owner too.
  std::vector<Vector<T>> gathered(static_cast<std::size_t>(P));
  const auto take = [&](const Message& message, int j) {
    gathered[j] = decode<T>(call, message, {left, first, span(j)}, false);
  };
  const Message own = encode(call, reduced, first);
  call.send(right, own, first);
  take(own, right);
  for (int round = 0; round < P - 1; ++round) {
    const Message message = call.receive(left, first + round);
    if (round < P - 2) call.send(right, message, first + round + 1);
    take(message, (me - round + P) % P);
  }
  return join(call, gathered, offsets);
}

SPARCML_FOR_ALL_TYPES(ssar_ring)

}  // namespace sparcml::messages
