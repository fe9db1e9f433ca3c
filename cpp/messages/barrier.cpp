#include "messages/collectives.h"

namespace sparcml::messages {

// Returns whether these bytes are a header of this call, for a message without a payload.
static bool is_header(const Call& call, const std::uint8_t* data) {
  const Header h = read_header(data), own = call.header(0);
  return h.magic == own.magic && h.version == own.version && h.call == own.call &&
         h.sequence == own.sequence && h.dtype >= 1 && h.dtype <= 4 && h.block > 0 &&
         h.nnz <= h.blocks && h.value_format == no_values && h.index_bytes == 0 &&
         h.crc == checksum(data, header_bytes);
}

static Message header_message(Call& call, const Header& header) {
  Message message{call.host.allocate(header_bytes), header_bytes};
  write_header(header, message.data(), header_bytes);
  return message;
}

void barrier(Call& call) {
  const int P = call.size(), me = call.rank();
  Header own = call.header(0);
  own.value_format = no_values;
  const Message message = header_message(call, own);
  for (int distance = 1; distance < P; distance *= 2) {
    call.send((me + distance) % P, message, -1);
    const int source = (me - distance + P) % P;
    const Message received = call.receive(source, -1);
    if (received.size != header_bytes || !is_header(call, received.data()))
      call.host.reject(Reading::header, received, source, 0, 0);
  }
}

std::vector<Header> agree(Call& call, Header own) {
  const int P = call.size(), me = call.rank();
  const Message message = header_message(call, own);
  std::vector<std::uint8_t> held(message.data(), message.data() + header_bytes);
  int round = 0;  // held: the headers of ranks me, me + 1, me + 2, ...
  for (int count = 1; count < P; ++round) {
    const int sent = std::min(count, P - count), source = (me + count) % P;
    Message bundle = message;
    if (sent > 1) {
      bundle = {call.host.allocate(sent * header_bytes), sent * header_bytes};
      std::memcpy(bundle.data(), held.data(), bundle.size);
    }
    call.send((me - count + P) % P, bundle, round);
    const Message received = call.receive(source, round);
    bool ours = received.size == sent * header_bytes;
    for (int i = 0; ours && i < sent; ++i)
      ours = is_header(call, received.data() + i * header_bytes);
    if (!ours)
      call.host.reject(Reading::bundle, received, source, 0, static_cast<std::size_t>(sent));
    held.insert(held.end(), received.data(), received.data() + received.size);
    count += sent;
  }
  std::vector<Header> headers(static_cast<std::size_t>(P));
  for (int i = 0; i < P; ++i)
    headers[static_cast<std::size_t>((me + i) % P)] =
        read_header(held.data() + static_cast<std::size_t>(i) * header_bytes);
  return headers;
}

}  // namespace sparcml::messages
