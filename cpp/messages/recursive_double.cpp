#include "messages/add.h"
#include "messages/collectives.h"
#include "messages/decode.h"
#include "messages/encode.h"

namespace sparcml::messages {

// The ranks of a doubling algorithm, see collectives/fold.py.
struct Fold {
  explicit Fold(int size) : power(1) {
    while (2 * power <= size) power *= 2, ++bits;
    extra = size - power;
  }
  bool is_folded(int rank) const { return rank < 2 * extra; }
  int virtual_rank(int rank) const { return is_folded(rank) ? rank / 2 : rank - extra; }
  int real(int rank) const { return rank < extra ? 2 * rank + 1 : rank + extra; }

  int power, bits = 0, extra;
};

template <class T>
Vector<T> ssar_recursive_double(Call& call, Vector<T> x) {
  const Fold fold(call.size());
  const int me = call.rank(), last = fold.bits + 1, partner = me ^ 1;
  const auto receive = [&](int peer, int round) {
    return decode<T>(call, call.receive(peer, round), {peer, round, x.blocks});
  };
  const auto send = [&](int peer, int round) {
    call.send(peer, encode(call, x, round), round);
  };
  if (fold.is_folded(me)) {
    if (me % 2 == 0) {
      send(partner, 0);
      return receive(partner, last);
    }
    x = add(call, receive(partner, 0), x);
  }
  for (int round = 1; round < last; ++round) {
    const int peer = fold.real(fold.virtual_rank(me) ^ 1 << (round - 1));
    send(peer, round);
    const Vector<T> y = receive(peer, round);
    x = me < peer ? add(call, x, y) : add(call, y, x);
  }
  if (fold.is_folded(me)) send(partner, last);
  return x;
}

SPARCML_FOR_ALL_TYPES(ssar_recursive_double)

}  // namespace sparcml::messages
