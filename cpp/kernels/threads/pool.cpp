#include "kernels/threads/pool.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#ifdef __linux__
#include <sched.h>
#endif

namespace sparcml {
namespace {

std::atomic<std::size_t> count{1};

class Pool {
 public:
  explicit Pool(pid_t process) : process_(process) {}

  bool is_of(pid_t process) const { return process_ == process; }

  // Returns false if another caller has the threads.
  bool run(std::size_t threads, std::size_t parts, void (*call)(void*, std::size_t),
           void* context) {
    std::unique_lock<std::mutex> turn(turn_, std::try_to_lock);
    if (!turn) return false;
    {
      const std::lock_guard<std::mutex> guard(lock_);
      add_threads(threads - 1);
      call_ = call, context_ = context, parts_ = parts;
      helpers_ = running_ = std::min(threads - 1, size_);
      next_.store(0, std::memory_order_relaxed);
      ++job_;
    }
    begin_.notify_all();
    take();
    std::unique_lock<std::mutex> guard(lock_);
    done_.wait(guard, [&] { return running_ == 0; });
    if (const std::exception_ptr error = std::exchange(error_, nullptr))
      std::rethrow_exception(error);
    return true;
  }

 private:
  // The system may refuse threads; then fewer do the work.
  void add_threads(std::size_t wanted) {
    try {
      for (; size_ < wanted; ++size_) std::thread(&Pool::serve, this, size_).detach();
    } catch (const std::system_error&) {
    }
  }

  // An error, such as missing memory, reaches the caller when all threads are done.
  void take() {
    try {
      for (std::size_t part; (part = next_.fetch_add(1)) < parts_;) call_(context_, part);
    } catch (...) {
      const std::lock_guard<std::mutex> guard(lock_);
      if (!error_) error_ = std::current_exception();
    }
  }

  void serve(std::size_t number) {
    std::uint64_t seen = 0;
    std::unique_lock<std::mutex> guard(lock_);
    while (true) {
      begin_.wait(guard, [&] { return job_ != seen; });
      seen = job_;
      if (number >= helpers_) continue;
      guard.unlock();
      inside = true;
      take();
      guard.lock();
      if (--running_ == 0) done_.notify_one();
    }
  }

  const pid_t process_;
  std::mutex turn_;  // held by the caller that has the threads
  std::mutex lock_;
  std::condition_variable begin_, done_;
  std::size_t size_ = 0, helpers_ = 0, running_ = 0;
  std::uint64_t job_ = 0;
  void (*call_)(void*, std::size_t) = nullptr;
  void* context_ = nullptr;
  std::size_t parts_ = 0;
  std::exception_ptr error_;
  std::atomic<std::size_t> next_{0};

 public:
  static thread_local bool inside;  // whether this thread runs a part
};

thread_local bool Pool::inside = false;

std::atomic<Pool*> shared{nullptr};

// A forked process has no threads, and perhaps a lock that nobody will release: it gets a pool
// of its own. Pools are never freed, since their threads end with the process.
Pool& pool() {
  const pid_t process = getpid();
  Pool* found = shared.load();
  while (!found || !found->is_of(process)) {
    Pool* const fresh = new Pool(process);
    if (shared.compare_exchange_strong(found, fresh)) return *fresh;
    delete fresh;
  }
  return *found;
}

}  // namespace

std::size_t threads() { return count.load(std::memory_order_relaxed); }

void set_threads(std::size_t wanted) { count.store(wanted ? wanted : 1); }

std::size_t usable_processors() {
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    return static_cast<std::size_t>(CPU_COUNT(&set));
#endif
  const unsigned all = std::thread::hardware_concurrency();
  return all ? all : 1;
}

void run_parts(std::size_t parts, void (*call)(void*, std::size_t), void* context) {
  const std::size_t wanted = threads() < parts ? threads() : parts;
  if (wanted > 1 && !Pool::inside) {
    struct Inside {
      Inside() { Pool::inside = true; }
      ~Inside() { Pool::inside = false; }
    } const mark;
    if (pool().run(wanted, parts, call, context)) return;
  }
  for (std::size_t part = 0; part < parts; ++part) call(context, part);
}

}  // namespace sparcml
