// An allreduce of a dense vector on two ranks.
#pragma once

#include "kernels/dense/dense.h"
#include "messages/call.h"

namespace sparcml::messages {

constexpr std::size_t pair_bytes = 1 << 24;  // a longer vector takes too much memory twice

// Two ranks exchange their vectors, and both add: a library's allreduce takes up to twice as
// long. NaN becomes canonical. See `MpiTransport.native_allreduce`.
template <class T>
void reduce_pair(Call& call, const Shared& in, const Shared& out) {
  const int peer = 1 - call.rank();
  call.channel.send(call.host, peer, {in, in->size}, 0);
  const Message message = call.aligned(call.channel.receive(call.host, peer));
  if (message.size != in->size) call.host.reject(Reading::vector, message, peer, 0, 0);
  const auto *a = reinterpret_cast<const T*>(in->data),
             *b = reinterpret_cast<const T*>(message.data());
  if (peer == 0) std::swap(a, b);
  combine_dense<T>(call.op, a, b, reinterpret_cast<T*>(out->data), in->size / sizeof(T));
  call.channel.finish(call.host);
}

}  // namespace sparcml::messages
