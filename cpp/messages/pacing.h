// How fast a rank sends in an exchange, in which each rank has a message for each other rank.
//
// Messages that are all handed to TCP at once share slow links unevenly: some arrive early, the
// last ones late, and links idle in between. Paced messages are sent in short segments, and a
// segment to a peer follows one that has arrived from it, so that all messages advance
// together. Short segments cost processor time, and a link with a long delay needs more bytes
// in flight: messages are paced only where links are slow, and as long as it makes them faster.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "messages/call.h"

namespace sparcml::messages {

constexpr std::size_t pacing_window = 450'000;  // bytes that a rank sends ahead of the others
constexpr double pacing_patience = 50e-3;  // seconds between segments; then the window doubles
constexpr double pacing_start = 100e-3;    // seconds until the first one
constexpr double pacing_rate = 20e6;       // bytes per second that a rank receives: slow below
constexpr double pacing_memory = 0.8;      // of the last rate: one late rank is no slow link
constexpr double pacing_worth = 0.7;       // of the rate of messages that are not paced
constexpr std::size_t pacing_measured = 500'000;  // bytes of a call that shows the rate

class Pacing {
 public:
  explicit Pacing(int size) : peers_(static_cast<std::size_t>(std::max(size - 1, 1))) {}

  // Begins a call, and measures the last one.
  void open() {
    if (complete_ >= pacing_measured) {
      double& rate = was_paced_ ? paced_rate_ : plain_rate_;
      rate = std::max(static_cast<double>(complete_) / (last_ - start_), pacing_memory * rate);
    }
    complete_ = 0;
    ++number_, is_active_ = was_paced_ = false;
    start_ = now();
  }

  // Begins an exchange; messages of an earlier one are no longer paced.
  void begin() {
    ++number_;
    received_.assign(peers_ + 1, 0);
    window_ = pacing_window / peers_;
    was_paced_ = is_active_ = plain_rate_ > 0 && plain_rate_ < pacing_rate &&
                              (paced_rate_ == 0 || paced_rate_ > pacing_worth * plain_rate_);
    last_ = now();
    has_begun_ = false;
  }

  bool is_active() const { return is_active_; }

  // The number of the exchange.
  std::uint32_t number() const { return number_; }

  void arrive(std::uint32_t exchange, int peer, std::size_t bytes) {
    if (!is_active_ || exchange != number_ || !bytes) return;
    received_[static_cast<std::size_t>(peer)] += bytes;
    last_ = now();
    has_begun_ = true;
  }

  // A message of the peer is complete: nothing limits the one to it.
  void complete(std::uint32_t exchange, int peer, std::size_t bytes) {
    complete_ += bytes;
    last_ = now();
    if (is_active_ && exchange == number_)
      received_[static_cast<std::size_t>(peer)] = unlimited;
  }

  // Returns how many bytes of a message may have been sent by now.
  std::size_t allowed(std::uint32_t exchange, int peer) const {
    if (!is_active_ || exchange != number_) return unlimited;
    return window_ + received_[static_cast<std::size_t>(peer)];
  }

  // Call it if nothing may be sent. Links with a long delay need a larger window. Before the
  // first segment, this rank rather waits for ranks that still compute.
  void wait() {
    const double time = now();
    if (time - last_ < (has_begun_ ? pacing_patience : pacing_start)) return;
    window_ = std::min(2 * window_, unlimited);
    last_ = time;
  }

 private:
  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max() / 4;

  std::size_t peers_, window_ = 0, complete_ = 0;
  std::vector<std::size_t> received_;  // bytes by peer
  std::uint32_t number_ = 0;
  bool is_active_ = false, was_paced_ = false, has_begun_ = false;
  double start_ = 0, last_ = 0;
  double plain_rate_ = 0, paced_rate_ = 0;  // bytes per second
};

}  // namespace sparcml::messages
