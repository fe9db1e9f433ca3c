// Streams of Python as vectors of compiled collectives, and back.
#pragma once

#include <array>

#include "bindings/arrays.h"
#include "bindings/message_memory.h"
#include "kernels/ascending/ascending.h"

// What must be the same on all ranks.
struct Shape {
  int dtype;  // its number in headers; 0: none of these
  std::uint32_t blocks, block;

  std::size_t item_bytes() const { return dtype == 2 || dtype == 4 ? 8 : 4; }
  std::size_t entry_bytes() const { return block * item_bytes(); }
  bool is_float() const { return dtype <= 2; }
};

inline nb::object interned(const char* text) {
  return nb::steal(PyUnicode_InternFromString(text));
}

// Returns an attribute; the name is interned.
inline nb::object get(nb::handle object, const nb::object& name) {
  PyObject* found = PyObject_GetAttr(object.ptr(), name.ptr());
  if (!found) throw nb::python_error();
  return nb::steal(found);
}

template <class F>
auto with_type(int dtype, F f) {
  switch (dtype) {
    case 1:
      return f(float{});
    case 2:
      return f(double{});
    case 3:
      return f(std::int32_t{});
    default:
      return f(std::int64_t{});
  }
}

// Attributes of a stream.
struct Operand {
  Shape shape;
  nb::object indices, values, fill;

  bool is_dense() const { return indices.is_none(); }
  std::size_t nnz() const { return is_dense() ? shape.blocks : nb::len(indices); }

  // Returns the vector. `function` begins the messages of errors.
  template <class T>
  ms::Vector<T> vector(const std::string& function) const {
    ms::Vector<T> x;
    x.blocks = x.nnz = shape.blocks;
    x.value_memory = memory_of(values);
    x.values = reinterpret_cast<const T*>(x.value_memory->data);
    x.dense = is_dense();
    if (!x.dense) {
      x.index_memory = memory_of(indices);
      x.indices = reinterpret_cast<const std::uint32_t*>(x.index_memory->data);
      x.nnz = x.index_memory->size / 4;
      if (sparcml::ascending_prefix(x.indices, x.nnz, shape.blocks) != x.nnz)
        throw nb::value_error(
            (function + ": indices must ascend and be below the number of blocks").c_str());
    }
    if (x.value_memory->size != x.nnz * shape.block * sizeof(T))
      throw nb::value_error((function + ": values must have block values per index").c_str());
    return x;
  }
};

// The class of streams, given by Python: kernels know nothing of it.
class StreamClass {
 public:
  explicit StreamClass(nb::object type) : type_(std::move(type)) {
    const nb::module_ numpy = nb::module_::import_("numpy");
    frombuffer_ = numpy.attr("frombuffer");
    uint32_ = numpy.attr("dtype")("uint32");
    const char* const names[] = {"float32", "float64", "int32", "int64"};
    for (std::size_t i = 0; i < dtypes_.size(); ++i) dtypes_[i] = numpy.attr("dtype")(names[i]);
  }

  bool holds(nb::handle x) const { return x.type().is(type_); }

  Operand read(nb::handle x) const {
    Operand o{{}, get(x, names_.indices), get(x, names_.values), get(x, names_.fill)};
    const auto size = nb::cast<std::int64_t>(get(x, names_.size)),
               block = nb::cast<std::int64_t>(get(x, names_.block));
    require(block > 0 && size >= 0 && size / block <= UINT32_MAX && block <= UINT32_MAX,
            "a stream must have at most 2^32 - 1 blocks of a positive size");
    o.shape = {dtype_of(o.values), static_cast<std::uint32_t>(size / block),
               static_cast<std::uint32_t>(block)};
    return o;
  }

  // The same for a stream that must have a dtype of messages.
  Operand read_known(nb::handle x) const {
    Operand o = read(x);
    if (!o.shape.dtype)
      throw nb::type_error("values of a stream must be float32, float64, int32 or int64");
    return o;
  }

  // Returns the number of the dtype of an array, or 0 if messages cannot have it.
  int dtype_of(nb::handle array) const {
    const nb::object dtype = get(array, names_.dtype);
    for (std::size_t i = 0; i < dtypes_.size(); ++i)
      if (dtype.is(dtypes_[i])) return static_cast<int>(i) + 1;
    for (std::size_t i = 0; i < dtypes_.size(); ++i)
      if (dtype.equal(dtypes_[i])) return static_cast<int>(i) + 1;
    return 0;
  }

  // Returns a stream with the arrays of a vector; `scratch` if nothing else uses these.
  template <class T>
  nb::object make(const Shape& shape, const ms::Vector<T>& x, nb::handle fill,
                  bool scratch) const {
    nb::object stream =
        nb::steal(PyType_GenericAlloc(reinterpret_cast<PyTypeObject*>(type_.ptr()), 0));
    if (!stream.is_valid()) throw nb::python_error();
    const ms::Shared& memory = x.index_memory ? x.index_memory : x.value_memory;
    set(stream, names_.indices,
        x.dense ? nb::none() : array(memory, x.indices, x.nnz, 4, uint32_));
    set(stream, names_.values, values(shape, x));
    set(stream, names_.size, nb::int_(std::uint64_t{x.blocks} * shape.block));
    set(stream, names_.block, nb::int_(shape.block));
    set(stream, names_.fill, fill);
    set(stream, names_.scratch, nb::bool_(scratch));
    return stream;
  }

  // Returns the values of a vector as an array.
  template <class T>
  nb::object values(const Shape& shape, const ms::Vector<T>& x) const {
    return array(x.value_memory, x.values, x.nnz * shape.block, sizeof(T),
                 dtypes_[static_cast<std::size_t>(shape.dtype - 1)]);
  }

 private:
  struct Names {
    nb::object size = interned("size"), block = interned("block"), fill = interned("fill"),
               indices = interned("raw_indices"), values = interned("raw_values"),
               scratch = interned("_scratch"), dtype = interned("dtype");
  };

  static void set(nb::handle object, const nb::object& name, nb::handle value) {
    if (PyObject_SetAttr(object.ptr(), name.ptr(), value.ptr())) throw nb::python_error();
  }
  nb::object array(const ms::Shared& memory, const void* data, std::size_t count,
                   std::size_t item_bytes, const nb::object& dtype) const {
    const nb::object part = array_of(memory, data, count * item_bytes);
    return frombuffer_(part[0], dtype, count, part[1]);
  }

  const Names names_;
  nb::object type_, frombuffer_, uint32_;
  std::array<nb::object, 4> dtypes_;
};
