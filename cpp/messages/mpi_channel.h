// Messages of an MPI library that the process has loaded, with the protocol of
// transport/mpi.py.
//
// Handles are integers of 4 bytes in MPICH and its relatives, and pointers in Open MPI. The
// layout of a status is private to the library, but for the place of its tag.
#pragma once

#include <deque>
#include <functional>
#include <list>

#include "messages/waiting.h"

namespace sparcml::messages {

template <class Handle>
struct MpiFunctions {
  using Status = void*;
  int (*isend)(const void*, int, Handle, int, int, Handle, Handle*);
  int (*irecv)(void*, int, Handle, int, int, Handle, Handle*);
  int (*improbe)(int, int, Handle, int*, Handle*, Status);
  int (*imrecv)(void*, int, Handle, Handle*, Handle*);
  int (*iprobe)(int, int, Handle, int*, Status);
  int (*get_count)(const void*, Handle, int*);
  int (*test)(Handle*, int*, Status);
  int (*iallreduce)(const void*, void*, int, Handle, Handle, Handle, Handle*);
};

// Constants of the library, and of the protocol.
template <class Handle>
struct MpiSettings {
  Handle comm, control, byte;
  int any_source, any_tag;
  std::size_t tag_at;  // offset of the tag in a status
  std::size_t segment_bytes;
};

constexpr std::size_t native_bytes = 1 << 20;  // of a part of a native allreduce: in the cache
constexpr std::size_t native_parts = 2;        // in progress at a time

enum MpiTag : int { whole_tag, length_tag, segment_tag };

template <class Handle>
class MpiChannel final : public Channel {
 public:
  MpiChannel(int rank, int size, const MpiFunctions<Handle>& mpi,
             const MpiSettings<Handle>& settings, const WaitPolicy& policy)
      : Channel(rank, size), mpi_(mpi), set_(settings), policy_(policy) {}

  void open(Host& host) override {
    if (has_control(host)) host.read_control();
  }

  void send(Host& host, int peer, const Message& message, int) override {
    while (!sending_.empty() && test_all(host, sending_.front())) sending_.pop_front();
    sending_.push_back({peer, Action::send, message, {}, 0});
    Transfer& t = sending_.back();
    if (message.size <= set_.segment_bytes) {
      start_send(host, t, message.data(), message.size, whole_tag);
      return;
    }
    t.length = static_cast<std::int64_t>(message.size);
    start_send(host, t, &t.length, sizeof t.length, length_tag);
    for (std::size_t at = 0; at < message.size; at += set_.segment_bytes)
      start_send(host, t, message.data() + at, std::min(set_.segment_bytes, message.size - at),
                 segment_tag);
  }

  void expect(Host&, int peer) override {
    expected_.push_back({peer, Action::receive, {}, {}, 0});
  }

  Message receive(Host& host, int peer) override {
    auto awaited = expected_.begin();
    while (awaited != expected_.end() && awaited->peer != peer) ++awaited;
    if (awaited == expected_.end()) {
      expect(host, peer);
      awaited = std::prev(expected_.end());
    }
    Transfer& t = *awaited;
    wait(host, t, [&] { return poll_receive(host, t); });
    Message message = std::move(t.message);
    expected_.erase(awaited);
    return message;
  }

  void finish(Host& host) override {
    while (!sending_.empty()) {
      Transfer& t = sending_.front();
      wait(host, t, [&] { return test_all(host, t); });
      sending_.pop_front();
    }
  }

  // Parts are complete one after the other, so that `done` reads them while they are cached.
  void native(Host& host, const NativeCall& call,
              const std::function<void(std::size_t, std::size_t)>& done) override {
    const std::size_t step = native_bytes / call.item_bytes;
    const auto handle = [](std::uint64_t value) {
      Handle h;
      std::memcpy(&h, &value, sizeof h);
      return h;
    };
    std::size_t complete = 0;
    for (std::size_t start = 0; start < call.count || complete < call.count;) {
      if (start < call.count) {
        const std::size_t at = start * call.item_bytes,
                          part = std::min(step, call.count - start);
        sending_.push_back({(rank + 1) % size, Action::native, {}, {}, 0});
        Transfer& t = sending_.back();
        Handle request;
        check(host,
              mpi_.iallreduce(call.in + at, call.out + at, static_cast<int>(part),
                              handle(call.type), handle(call.op), set_.comm, &request),
              t.peer, t.action);
        t.requests.push_back(request);
        t.length = static_cast<std::int64_t>(part);
        start += part;
        if (sending_.size() < native_parts && start < call.count) continue;
      }
      Transfer& first = sending_.front();
      wait(host, first, [&] { return test_all(host, first); });
      const auto part = static_cast<std::size_t>(first.length);
      sending_.pop_front();
      done(complete, part);
      complete += part;
    }
  }

  void abandon() override {
    // MPI may still read and write these buffers.
    static auto* const kept = new std::deque<std::list<Transfer>>();
    kept->push_back(std::move(sending_));
    kept->push_back(std::move(expected_));
    sending_.clear(), expected_.clear();
  }

  bool poll() override { return poll_ && poll_(); }

 private:
  struct Transfer {
    int peer;
    Action action;
    Message message;
    std::deque<Handle> requests;
    std::int64_t length;
  };

  bool has_control(Host& host) {
    int found = 0;
    check(host, mpi_.iprobe(set_.any_source, set_.any_tag, set_.control, &found, status_), 0,
          Action::receive);
    return found;
  }

  static void check(Host& host, int code, int peer, Action action) {
    if (code) host.lose(code, peer, action);
  }

  void start_send(Host& host, Transfer& t, const void* data, std::size_t size, int tag) {
    Handle request;
    check(host,
          mpi_.isend(data, static_cast<int>(size), set_.byte, t.peer, tag, set_.comm, &request),
          t.peer, Action::send);
    t.requests.push_back(request);
  }

  // Tests each request several times: one test sends only a part of a long message.
  bool test_all(Host& host, Transfer& t) {
    while (!t.requests.empty()) {
      int done = 0;
      for (int tries = 0; tries < 4 && !done; ++tries)
        check(host, mpi_.test(&t.requests.front(), &done, status_), t.peer, t.action);
      if (!done) return false;
      t.requests.pop_front();
    }
    return true;
  }

  // Starts to receive a message that has arrived; returns whether it has.
  bool begin(Host& host, Transfer& t) {
    if (t.message.memory) return true;
    int found = 0;
    Handle probed, request;
    check(host, mpi_.improbe(t.peer, set_.any_tag, set_.comm, &found, &probed, status_), t.peer,
          Action::receive);
    if (!found) return false;
    int tag, count = 0;
    std::memcpy(&tag, status_ + set_.tag_at, sizeof tag);
    check(host, mpi_.get_count(status_, set_.byte, &count), t.peer, Action::receive);
    if (tag == whole_tag) {
      t.message = {host.allocate(static_cast<std::size_t>(count)),
                   static_cast<std::size_t>(count)};
      check(host, mpi_.imrecv(t.message.data(), count, set_.byte, &probed, &request), t.peer,
            Action::receive);
      t.requests.push_back(request);
      return true;
    }
    check(host, mpi_.imrecv(&t.length, count, set_.byte, &probed, &request), t.peer,
          Action::receive);
    t.requests.push_back(request);
    while (!test_all(host, t)) {
    }
    t.message = {host.allocate(static_cast<std::size_t>(t.length)),
                 static_cast<std::size_t>(t.length)};
    for (std::size_t at = 0; at < t.message.size; at += set_.segment_bytes) {
      const std::size_t size = std::min(set_.segment_bytes, t.message.size - at);
      check(host,
            mpi_.irecv(t.message.data() + at, static_cast<int>(size), set_.byte, t.peer,
                       segment_tag, set_.comm, &request),
            t.peer, Action::receive);
      t.requests.push_back(request);
    }
    return true;
  }

  // Polls a receive while the others that are expected begin, each peer's in their order.
  bool poll_receive(Host& host, Transfer& awaited) {
    if (expected_.size() > 1) {
      blocked_.assign(static_cast<std::size_t>(size), false);
      for (Transfer& t : expected_)
        if (!blocked_[static_cast<std::size_t>(t.peer)] && !begin(host, t))
          blocked_[static_cast<std::size_t>(t.peer)] = true;
    } else {
      begin(host, awaited);
    }
    return awaited.message.memory && test_all(host, awaited);
  }

  template <class Poll>
  void wait(Host& host, const Transfer& t, Poll done) {
    if (done()) return;
    Wait waiting(policy_, host, t.peer, t.action);
    poll_ = done;
    while (!done()) waiting.pause([&] { return has_control(host); });
    poll_ = nullptr;
    waiting.end();
  }

  const MpiFunctions<Handle> mpi_;
  const MpiSettings<Handle> set_;
  const WaitPolicy policy_;
  std::list<Transfer> sending_, expected_;  // elements keep their addresses
  std::vector<bool> blocked_;
  std::function<bool()> poll_;
  alignas(16) std::uint8_t status_[128];
};

}  // namespace sparcml::messages
