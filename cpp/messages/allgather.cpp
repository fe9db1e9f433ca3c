#include "messages/collectives.h"
#include "messages/header.h"

namespace sparcml::messages {

static std::size_t item_bytes(std::uint8_t dtype) { return dtype == 2 || dtype == 4 ? 8 : 4; }

// Returns the length of the message that these bytes begin with, or 0 if it is none of this
// call.
static std::size_t length_of(const Call& call, const std::uint8_t* data, std::size_t size) {
  if (size < header_bytes) return 0;
  const Header h = read_header(data), own = call.header(0);
  if (h.magic != own.magic || h.version != own.version || h.call != own.call ||
      h.sequence != own.sequence || h.dtype < 1 || h.dtype > 4 || h.block < 1 ||
      h.nnz > h.blocks || (h.value_format != raw_values && h.value_format != no_values))
    return 0;
  std::size_t length = header_bytes + h.index_bytes;
  if (h.value_format == raw_values) {
    const std::size_t entry = h.block * item_bytes(h.dtype);
    if (h.nnz > size / entry) return 0;
    length += h.nnz * entry;
  }
  return length <= size ? length : 0;
}

std::vector<Message> allgather(Call& call, const Message& own) {
  const int P = call.size(), me = call.rank();
  std::vector<Message> held{own};  // of ranks me, me + 1, me + 2, ...
  for (int round = 0; static_cast<int>(held.size()) < P; ++round) {
    const int count = static_cast<int>(held.size()), sent = std::min(count, P - count);
    Message bundle = held[0];
    if (sent > 1) {
      std::size_t total = 0, at = 0;
      for (int i = 0; i < sent; ++i) total += held[i].size;
      bundle = {call.host.allocate(total), total};
      for (int i = 0; i < sent; at += held[i++].size)
        std::memcpy(bundle.data() + at, held[i].data(), held[i].size);
    }
    const int source = (me + count) % P;
    call.send((me - count + P) % P, bundle, round);
    const Message received = call.receive(source, round);
    std::size_t at = 0;
    for (int i = 0; i < sent; ++i) {
      const std::size_t left = received.size - at;
      const std::size_t length = length_of(call, received.data() + at, left);
      if (!length || (i == sent - 1 && length != left))
        call.host.reject(Reading::bundle, received, source, 0, static_cast<std::size_t>(sent));
      // Copied: the next message of a bundle need not be aligned.
      Message part = received;
      if (sent > 1) {
        part = {call.host.allocate(length), length};
        std::memcpy(part.data(), received.data() + at, length);
      }
      held.push_back(std::move(part));
      at += length;
    }
  }
  std::vector<Message> messages(static_cast<std::size_t>(P));
  for (int i = 0; i < P; ++i) messages[(me + i) % P] = std::move(held[i]);
  return messages;
}

}  // namespace sparcml::messages
