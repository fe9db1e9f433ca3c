// An array that grows at its end. std::vector copies when it grows, and needs memory for both
// copies; realloc moves large blocks by their page tables, and untouched pages cost nothing.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>

namespace sparcml {

template <class T>
class Growing {
  static_assert(std::is_trivially_copyable<T>::value, "realloc moves bytes");

 public:
  Growing() = default;
  Growing(const Growing&) = delete;
  Growing& operator=(const Growing&) = delete;
  ~Growing() { std::free(data_); }

  std::size_t size() const { return size_; }
  const T* begin() const { return data_; }
  T* begin() { return data_; }
  void clear() { size_ = 0; }

  // Reserves `more` items to be written from end(); advance() adds the number written.
  T* end(std::size_t more) {
    if (capacity_ - size_ < more) resize(size_ + size_ / 2 + more);
    return data_ + size_;
  }
  void advance(T* end) { size_ = static_cast<std::size_t>(end - data_); }

  // Returns the array, cut to its size; the caller must free it.
  T* release() {
    resize(size_ ? size_ : 1);
    size_ = capacity_ = 0;
    return std::exchange(data_, nullptr);
  }

 private:
  void resize(std::size_t capacity) {
    void* moved = std::realloc(data_, capacity * sizeof(T));
    if (!moved) throw std::bad_alloc();
    data_ = static_cast<T*>(moved);
    capacity_ = capacity;
  }

  T* data_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace sparcml
