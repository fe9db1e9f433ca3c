// Pieces of a result whose sizes are known only after the work. Threads take the pieces in
// order, and each piece begins where those before it end.
//
// op.h explains the anonymous namespace.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>

#include "kernels/threads/pool.h"

namespace sparcml {
namespace {

class Pieces {
 public:
  explicit Pieces(std::size_t count) : count_(count) {}

  // Calls work() on all threads. It must take pieces until there are none, and finish each one
  // that it takes: nothing may throw in between, since others wait for it.
  template <class Work>
  void run(Work&& work) {
    const std::size_t most = threads();
    for_parts(count_ < most ? count_ : most, [&](std::size_t) { work(); });
  }

  bool take(std::size_t& piece) {
    piece = next_.fetch_add(1, std::memory_order_relaxed);
    return piece < count_;
  }

  // Waits for the pieces before this one; returns their size. An earlier piece is with a thread
  // that is at work on it.
  std::size_t begin(std::size_t piece) const {
    constexpr int spins = 1000;  // some microseconds; then that thread may need this processor
    for (int n = 0; finished_.load(std::memory_order_acquire) != piece; ++n) {
      if (n < spins) {
#ifdef __x86_64__
        __builtin_ia32_pause();
#endif
      } else {
        std::this_thread::yield();
      }
    }
    return size_;
  }

  void finish(std::size_t piece, std::size_t size) {
    size_ += size;
    finished_.store(piece + 1, std::memory_order_release);
  }

  std::size_t size() const { return size_; }  // of all pieces, when they are finished

 private:
  const std::size_t count_;
  alignas(64) std::atomic<std::size_t> next_{0};
  alignas(64) std::atomic<std::size_t> finished_{0};
  std::size_t size_ = 0;
};

}  // namespace
}  // namespace sparcml
