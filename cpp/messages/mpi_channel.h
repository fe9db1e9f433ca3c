// All messages of a rank through an MPI library.
#pragma once

#include <functional>
#include <list>

#include "messages/mpi_transfers.h"
#include "messages/pacing.h"
#include "messages/waiting.h"

namespace sparcml::messages {

constexpr std::size_t native_bytes = 1 << 20;  // of a part of a native allreduce: in the cache
constexpr std::size_t native_parts = 2;        // in progress at a time

template <class Handle>
class MpiChannel final : public Channel {
 public:
  MpiChannel(int rank, int size, const MpiFunctions<Handle>& mpi,
             const MpiSettings<Handle>& settings, const WaitPolicy& policy)
      : Channel(rank, size), mpi_(mpi, settings), policy_(policy), pacing_(size) {}

  void open(Host& host) override {
    pacing_.open();
    if (mpi_.has_control(host)) host.read_control();
  }

  void begin_exchange() override {
    if (mpi_.set.paced_bytes) pacing_.begin();
  }

  void send(Host& host, int peer, const Message& message, int) override {
    while (!sending_.empty() && is_sent(host, sending_.front())) sending_.pop_front();
    const bool paced = pacing_.is_active() && message.size > mpi_.set.paced_bytes;
    sending_.push_back({peer, Action::send, message});
    Transfer& t = sending_.back();
    t.segment = paced ? mpi_.set.paced_bytes : mpi_.set.segment_bytes;
    t.exchange = paced ? pacing_.number() : 0;
    unposted_++ ? advance(host) : post_all(host);
  }

  void expect(Host&, int peer) override {
    expected_.push_back({peer, Action::receive});
    expected_.back().exchange = pacing_.number();
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
    pacing_.complete(t.exchange, peer, message.size);
    expected_.erase(awaited);
    return message;
  }

  void finish(Host& host) override {
    while (!sending_.empty()) {
      Transfer& t = sending_.front();
      wait(host, t, [&] { return is_sent(host, t); });
      sending_.pop_front();
    }
  }

  // Parts are complete one after the other, so that `done` reads them while they are cached.
  void native(Host& host, const NativeCall& call,
              const std::function<void(std::size_t, std::size_t)>& done) override {
    const std::size_t step = native_bytes / call.item_bytes;
    const Handle type = mpi_.set.types[static_cast<std::size_t>(call.dtype - 1)],
                 op = mpi_.set.ops[static_cast<std::size_t>(call.op)];
    std::size_t complete = 0;
    for (std::size_t start = 0; start < call.count || complete < call.count;) {
      if (start < call.count) {
        const std::size_t at = start * call.item_bytes,
                          part = std::min(step, call.count - start);
        sending_.push_back({(rank + 1) % size, Action::native});
        Transfer& t = sending_.back();
        Handle request;
        mpi_.check(host,
                   mpi_.mpi.iallreduce(call.in + at, call.out + at, static_cast<int>(part),
                                       type, op, mpi_.set.comm, &request),
                   t.peer, t.action);
        t.requests.push_back(request);
        t.is_posted = true;
        t.length[0] = static_cast<std::int64_t>(part);
        start += part;
        if (sending_.size() < native_parts && start < call.count) continue;
      }
      Transfer& first = sending_.front();
      wait(host, first, [&] { return mpi_.test_all(host, first); });
      const auto part = static_cast<std::size_t>(first.length[0]);
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
    unposted_ = 0;
  }

  bool poll() override { return poll_ && poll_(); }

 private:
  using Transfer = messages::Transfer<Handle>;

  // Passes messages to MPI, each peer's in their order.
  void post_all(Host& host) {
    blocked_.assign(static_cast<std::size_t>(size), false);
    for (Transfer& t : sending_) {
      const auto peer = static_cast<std::size_t>(t.peer);
      if (t.is_posted || blocked_[peer]) continue;
      t.is_posted = mpi_.post(host, t, pacing_.allowed(t.exchange, t.peer));
      blocked_[peer] = !t.is_posted;
      unposted_ -= t.is_posted;
    }
    if (unposted_) pacing_.wait();
  }

  bool is_sent(Host& host, Transfer& t) { return t.is_posted && mpi_.test_all(host, t); }

  // Begins all receives that are expected, each peer's in their order.
  void begin_all(Host& host) {
    blocked_.assign(static_cast<std::size_t>(size), false);
    for (Transfer& t : expected_)
      if (!blocked_[static_cast<std::size_t>(t.peer)] && !mpi_.begin(host, t, longest))
        blocked_[static_cast<std::size_t>(t.peer)] = true;
  }

  // Returns whether a message is complete; counts what has arrived, for the pace of others.
  bool is_received(Host& host, Transfer& t) {
    if (!t.message.memory) return false;
    const std::size_t before = t.requests.size();
    const bool complete = mpi_.test_all(host, t);
    if (t.segment) pacing_.arrive(t.exchange, t.peer, (before - t.requests.size()) * t.segment);
    return complete;
  }

  // Passes more of the messages to MPI if more has arrived.
  void advance(Host& host) {
    begin_all(host);
    for (Transfer& t : expected_) is_received(host, t);
    post_all(host);
  }

  // Polls a receive while the others that are expected begin.
  bool poll_receive(Host& host, Transfer& awaited) {
    if (expected_.size() > 1)
      begin_all(host);
    else
      mpi_.begin(host, awaited, longest);
    return is_received(host, awaited);
  }

  template <class Poll>
  void wait(Host& host, const Transfer& t, Poll done) {
    if (done()) return;
    Wait waiting(policy_, host, t.peer, t.action);
    struct Polling {  // `done` refers to this stack frame, which an error may leave
      std::function<bool()>& poll;
      ~Polling() { poll = nullptr; }
    } polling{poll_ = done};
    while (!done() && !done()) {  // a poll may receive what only the next one finds
      waiting.pause([&] { return mpi_.has_control(host); });
      if (unposted_) advance(host);
    }
    waiting.end();
  }

  MpiTransfers<Handle> mpi_;
  const WaitPolicy policy_;
  std::list<Transfer> sending_, expected_;  // elements keep their addresses
  int unposted_ = 0;                        // messages that MPI does not have completely
  Pacing pacing_;
  std::vector<bool> blocked_;  // by peer
  std::function<bool()> poll_;
};

}  // namespace sparcml::messages
