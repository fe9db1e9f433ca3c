// Memory of messages and vectors that Python objects own or refer to.
#pragma once

#include <nanobind/nanobind.h>

#include "messages/block_pool.h"
#include "messages/vector.h"

namespace nb = nanobind;
namespace ms = sparcml::messages;

constexpr std::size_t medium = 1 << 15;  // bytes; such memory comes from the pool of blocks
constexpr std::size_t large = 1 << 20;   // bytes; such memory comes from the pool in Python

// Memory of a Python object. It may end in a thread that does not hold the GIL.
class PythonMemory final : public ms::Memory {
 public:
  explicit PythonMemory(const Py_buffer& view)
      : Memory(static_cast<std::uint8_t*>(view.buf), static_cast<std::size_t>(view.len),
               !view.readonly),
        view_(view) {}
  ~PythonMemory() override {
    nb::gil_scoped_acquire gil;
    PyBuffer_Release(&view_);
  }
  nb::object owner() const { return nb::borrow(view_.obj); }

 private:
  Py_buffer view_;
};

inline ms::Shared memory_of(nb::handle object) {
  Py_buffer view;
  if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_SIMPLE)) throw nb::python_error();
  return std::make_shared<PythonMemory>(view);
}

// Returns writable memory of at least this size, from an allocator.
inline ms::Shared memory_of(nb::handle object, std::size_t size) {
  ms::Shared memory = memory_of(object);
  if (memory->size < size || !memory->writable)
    throw nb::value_error("an allocator must return writable memory of the size");
  return memory;
}

// A Python object that owns memory of the loop, and lends it through the buffer protocol.
struct MessageMemory {
  ms::Shared memory;
};

// Returns the owner and the offset of an array in it; short arrays are copied.
inline nb::object array_of(const ms::Shared& memory, const void* data, std::size_t nbytes) {
  const auto* start = static_cast<const std::uint8_t*>(data);
  const auto offset = start - memory->data;
  if (const auto* python = dynamic_cast<const PythonMemory*>(memory.get()))
    return nb::make_tuple(python->owner(), offset);
  if (dynamic_cast<const ms::BlockMemory*>(memory.get()))
    return nb::make_tuple(nb::cast(MessageMemory{memory}), offset);
  return nb::make_tuple(nb::bytes(start, nbytes), 0);
}
