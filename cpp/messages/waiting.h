// How a rank waits: it spins, then yields the processor, then naps for longer and longer.
#pragma once

#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>

#include "messages/call.h"

namespace sparcml::messages {

struct WaitPolicy {
  double spin = 0;          // seconds of polling without a pause for others
  double yield = 1e-3;      // seconds until the rank naps
  double fraction = 0.125;  // of the time waited so far: the length of a nap
  double longest_nap = 2e-3;
};

// A native allreduce makes progress only while it is polled.
constexpr double native_spins = 250, native_yields = 5;
constexpr double look_seconds = 1e-3;  // between two looks for control messages

// Seconds until Host::waiting() is called even without a control message. Most waits are
// shorter, and a call of Python from a cold cache takes as long as adding a message.
constexpr double report_seconds = 10e-3;

// One wait for a peer. Call pause() after each poll that has found nothing.
class Wait {
 public:
  Wait(const WaitPolicy& policy, Host& host, int peer, Action action)
      : policy_(policy), host_(host), peer_(peer), action_(action) {}
  ~Wait() {
    if (slack_ >= 0) prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(slack_), 0, 0, 0);
  }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  // `has_control` tells whether a control message has arrived.
  template <class F>
  void pause(F has_control) {
    const double time = now();
    if (!polls_++) start_ = looked_ = reported_ = time;
    const double waited = time - start_;
    if (time - looked_ >= look_seconds) {
      looked_ = time;
      if (time - reported_ >= report_seconds || has_control()) {
        host_.waiting(peer_, action_, waited);
        has_reported_ = true;
        looked_ = reported_ = now();
      }
    }
    const bool native = action_ == Action::native;
    if (waited < (native ? native_spins : 1) * policy_.spin) {
      relax();
    } else if (waited < (native ? native_yields : 1) * policy_.yield) {
      sched_yield();
    } else {
      nap(std::min(policy_.longest_nap, policy_.fraction * waited));
    }
  }

  void end() {
    if (has_reported_) host_.end_wait();
  }

 private:
  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  void nap(double seconds) {
    // The kernel delays timers by 50 us so that it can combine them; naps are shorter. The
    // thread is the user's: the destructor restores its setting.
    if (slack_ < 0) {
      slack_ = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
      prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);
    }
    const timespec time{0, static_cast<long>(seconds * 1e9)};
    nanosleep(&time, nullptr);
  }

  const WaitPolicy& policy_;
  Host& host_;
  const int peer_;
  const Action action_;
  long polls_ = 0;
  double start_ = 0, looked_ = 0, reported_ = 0;
  bool has_reported_ = false;
  int slack_ = -1;  // of the thread's timers in nanoseconds, once it has been changed
};

}  // namespace sparcml::messages
