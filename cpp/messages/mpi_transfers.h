// Messages between two ranks through an MPI library. Long ones are sent in segments, after a
// message with their length and that of a segment.
#pragma once

#include <deque>

#include "messages/channel.h"
#include "messages/mpi_library.h"

namespace sparcml::messages {

// A message that is sent or received.
template <class Handle>
struct Transfer {
  int peer;
  Action action;
  Message message{}, lengths{};  // lengths: of a long message that is received
  std::deque<Handle> requests{};
  std::int64_t length[2] = {0, 0};  // of the message and of a segment
  std::size_t segment = 0;          // bytes
  std::size_t at = 0;               // bytes that MPI has
  std::uint32_t exchange = 0;       // of a paced message
  bool is_begun = false, is_posted = false;
};

template <class Handle>
class MpiTransfers {
 public:
  MpiTransfers(const MpiFunctions<Handle>& mpi, const MpiSettings<Handle>& settings)
      : mpi(mpi), set(settings) {}

  bool has_control(Host& host) {
    int found = 0;
    check(host, mpi.iprobe(set.any_source, set.any_tag, set.control, &found, status_), 0,
          Action::receive);
    return found;
  }

  static void check(Host& host, int code, int peer, Action action) {
    if (code) host.lose(code, peer, action);
  }

  // Passes as much of a message to MPI as may be sent; returns whether that is all of it.
  bool post(Host& host, Transfer<Handle>& t, std::size_t allowed) {
    const Message& message = t.message;
    if (message.size <= t.segment) {
      start_send(host, t, message.data(), message.size, whole_tag);
      return true;
    }
    if (!t.is_begun) {
      t.is_begun = true;
      t.length[0] = static_cast<std::int64_t>(message.size);
      t.length[1] = static_cast<std::int64_t>(t.segment);
      start_send(host, t, t.length, sizeof t.length, length_tag);
    }
    for (; t.at < std::min(allowed, message.size); t.at += t.segment)
      start_send(host, t, message.data() + t.at, std::min(t.segment, message.size - t.at),
                 segment_tag);
    return t.at >= message.size;
  }

  // Tests each request several times: one test sends only a part of a long message.
  bool test_all(Host& host, Transfer<Handle>& t) {
    while (!t.requests.empty()) {
      int done = 0;
      for (int tries = 0; tries < 4 && !done; ++tries)
        check(host, mpi.test(&t.requests.front(), &done, status_), t.peer, t.action);
      if (!done) return false;
      t.requests.pop_front();
    }
    return true;
  }

  // Starts to receive a message that has arrived; returns whether it has. Of one that is longer
  // than `longest` only the first segment is received: its header tells what is wrong.
  bool begin(Host& host, Transfer<Handle>& t, std::size_t longest) {
    if (t.message.memory) return true;
    if (t.lengths.memory) return test_all(host, t) && begin_segments(host, t, longest);
    int found = 0;
    Handle probed, request;
    check(host, mpi.improbe(t.peer, set.any_tag, set.comm, &found, &probed, status_), t.peer,
          Action::receive);
    if (!found) return false;
    int tag, count = 0;
    std::memcpy(&tag, status_ + set.tag_at, sizeof tag);
    check(host, mpi.get_count(status_, set.byte, &count), t.peer, Action::receive);
    if (tag == whole_tag) {
      t.message = {host.allocate(static_cast<std::size_t>(count)),
                   static_cast<std::size_t>(count)};
      check(host, mpi.imrecv(t.message.data(), count, set.byte, &probed, &request), t.peer,
            Action::receive);
      t.requests.push_back(request);
      return true;
    }
    t.lengths = {host.allocate(static_cast<std::size_t>(count)),
                 static_cast<std::size_t>(count)};
    check(host, mpi.imrecv(t.lengths.data(), count, set.byte, &probed, &request), t.peer,
          Action::receive);
    t.requests.push_back(request);
    return test_all(host, t) && begin_segments(host, t, longest);
  }

  const MpiFunctions<Handle> mpi;
  const MpiSettings<Handle> set;

 private:
  bool begin_segments(Host& host, Transfer<Handle>& t, std::size_t longest) {
    if (t.lengths.size == sizeof t.length)
      std::memcpy(t.length, t.lengths.data(), sizeof t.length);
    if (t.length[0] <= 0 || t.length[1] <= 0 ||
        static_cast<std::size_t>(t.length[1]) > set.segment_bytes)
      host.reject(Reading::vector, t.lengths, t.peer, 0, 0);
    t.segment = static_cast<std::size_t>(t.length[1]);
    auto size = static_cast<std::size_t>(t.length[0]);
    if (size > longest) size = std::min(size, t.segment);
    t.message = {host.allocate(size), size};
    Handle request;
    for (std::size_t at = 0; at < t.message.size; at += t.segment) {
      const std::size_t bytes = std::min(t.segment, t.message.size - at);
      check(host,
            mpi.irecv(t.message.data() + at, static_cast<int>(bytes), set.byte, t.peer,
                      segment_tag, set.comm, &request),
            t.peer, Action::receive);
      t.requests.push_back(request);
    }
    return true;
  }

  void start_send(Host& host, Transfer<Handle>& t, const void* data, std::size_t size,
                  int tag) {
    Handle request;
    check(host,
          mpi.isend(data, static_cast<int>(size), set.byte, t.peer, tag, set.comm, &request),
          t.peer, Action::send);
    t.requests.push_back(request);
  }

  alignas(16) std::uint8_t status_[128];
};

}  // namespace sparcml::messages
