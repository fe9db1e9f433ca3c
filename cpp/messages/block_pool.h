// Blocks of memory that are reused by later messages, without the GIL.
#pragma once

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "messages/memory.h"

namespace sparcml::messages {

// Unused blocks by size. No function waits for another thread: in a forked process, the one
// that holds the lock may not exist.
class BlockPool {
 public:
  static constexpr std::size_t most_unused = 16 << 20;  // bytes

  // Never destroyed: blocks may end after all static objects.
  static BlockPool& instance() {
    static auto* const pool = new BlockPool();
    return *pool;
  }

  // Returns a block that starts at a cache line, and rounds the size up.
  std::uint8_t* acquire(std::size_t& size) {
    std::size_t step = 64;
    while (16 * step < size) step *= 2;
    size = (size + step - 1) / step * step;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock) {
      const auto found = unused_.find(size);
      if (found != unused_.end() && !found->second.empty()) {
        std::uint8_t* block = found->second.back();
        found->second.pop_back();
        unused_bytes_ -= size;
        return block;
      }
    }
    void* block = std::aligned_alloc(64, size);
    if (!block) throw std::bad_alloc();
    return static_cast<std::uint8_t*>(block);
  }

  // Keeps a block; if there are too many, they are of sizes that are no longer needed.
  void give_back(std::uint8_t* block, std::size_t size) noexcept {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return std::free(block);
    if (unused_bytes_ + size > most_unused) clear();
    try {
      unused_[size].push_back(block);
      unused_bytes_ += size;
    } catch (const std::bad_alloc&) {
      std::free(block);
    }
  }

  // Frees all unused blocks; returns their bytes.
  std::size_t release() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    return lock ? clear() : 0;
  }

 private:
  std::size_t clear() noexcept {
    for (auto& [size, blocks] : unused_) {
      for (std::uint8_t* block : blocks) std::free(block);
      blocks.clear();
    }
    return std::exchange(unused_bytes_, 0);
  }

  std::mutex mutex_;
  std::map<std::size_t, std::vector<std::uint8_t*>> unused_;
  std::size_t unused_bytes_ = 0;
};

class BlockMemory final : public Memory {
 public:
  explicit BlockMemory(std::size_t size) : BlockMemory(size, size) {}
  ~BlockMemory() override { BlockPool::instance().give_back(data, acquired_); }

 private:
  BlockMemory(std::size_t size, std::size_t acquired)
      : Memory(BlockPool::instance().acquire(acquired), size, true), acquired_(acquired) {}

  const std::size_t acquired_;
};

}  // namespace sparcml::messages
