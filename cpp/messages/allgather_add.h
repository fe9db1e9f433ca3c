// An allgather of vectors that are added to an array.
#pragma once

#include <algorithm>

#include "kernels/dense/dense.h"
#include "messages/collectives.h"
#include "messages/decode.h"

namespace sparcml::messages {

// Returns whether a message holds a vector that is shaped as `own` says.
inline bool is_alike(const Message& message, const Header& own) {
  const Header h = read_header(message.data());
  return h.value_format == raw_values && h.dtype == own.dtype && h.blocks == own.blocks &&
         h.block == own.block;
}

// Adds the vectors of all ranks to `out` in rank order, and returns whether all have the shape
// of this call's; otherwise nothing is added. All are read before the first is added.
template <class T>
bool add_all(Call& call, const std::vector<Message>& messages, T* out) {
  const Header shape = call.header(0);
  if (!std::all_of(messages.begin(), messages.end(),
                   [&](const Message& m) { return is_alike(m, shape); }))
    return false;
  std::vector<Vector<T>> parts;
  for (int rank = 0; rank < call.size(); ++rank)
    parts.push_back(
        decode<T>(call, messages[static_cast<std::size_t>(rank)], {rank, 0, call.blocks}));
  Timer timer(call, add_phase);
  for (const Vector<T>& x : parts) {
    if (x.dense)
      combine_dense<T>(Op::sum, out, x.values, out, x.blocks * call.block);
    else
      scatter<T>(Op::sum, out, x.entries(), call.block);
  }
  return true;
}

}  // namespace sparcml::messages
