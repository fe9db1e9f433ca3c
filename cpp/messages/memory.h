// Memory of messages and vectors, shared by reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#include "kernels/op.h"

namespace sparcml::messages {

// A block of memory. Its owner may be a Python object: see Host::allocate().
class Memory {
 public:
  Memory(std::uint8_t* data, std::size_t size, bool writable)
      : data(data), size(size), writable(writable) {}
  virtual ~Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::uint8_t* const data;
  const std::size_t size;
  const bool writable;  // false: somebody else reads it, too
};

using Shared = std::shared_ptr<Memory>;

class HeapMemory final : public Memory {
 public:
  explicit HeapMemory(std::size_t size) : Memory(allocate(size), size, true) {}
  ~HeapMemory() override { std::free(data); }

 private:
  static std::uint8_t* allocate(std::size_t size) {
    void* data = std::malloc(size ? size : 1);
    if (!data) throw std::bad_alloc();
    return static_cast<std::uint8_t*>(data);
  }
};

class Allocator {
 public:
  virtual ~Allocator() = default;

  virtual Shared allocate(std::size_t size) = 0;
};

// What the vectors of a call have in common.
struct VectorContext {
  Allocator& memory;
  std::uint32_t block;  // values per entry
  std::uint64_t fill;   // bits of the value of absent entries

  template <class T>
  T fill_value() const {
    return from_bits<T>(static_cast<Bits<T>>(fill));
  }
};

// The first `size` bytes of a block.
struct Message {
  Shared memory;
  std::size_t size = 0;

  std::uint8_t* data() const { return memory->data; }
};

// Sections are read as words, which begin at a multiple of 8 bytes.
inline bool is_aligned(const std::uint8_t* message) {
  return reinterpret_cast<std::uintptr_t>(message) % 8 == 0;
}

}  // namespace sparcml::messages
