// Allreduces whose arguments are known from an earlier call, from a stream to a stream without
// Python between; see communicator/prepared.py.
#pragma once

#include <memory>
#include <unordered_map>

#include "bindings/call_state.h"
#include "bindings/reduction_calls.h"

// What calls of one shape have in common. Objects are compared by identity: other strings and
// dtypes that are equal only take the way through Python.
struct CallShape {
  nb::object algorithm, dtype;  // as the caller names them
  std::int64_t size, block;

  bool operator==(const CallShape& other) const {
    return algorithm.is(other.algorithm) && dtype.is(other.dtype) && size == other.size &&
           block == other.block;
  }
  struct Hash {
    std::size_t operator()(const CallShape& s) const {
      const auto pointers = reinterpret_cast<std::size_t>(s.algorithm.ptr()) ^
                            reinterpret_cast<std::size_t>(s.dtype.ptr()) >> 4;
      return pointers ^ static_cast<std::size_t>(s.size) * 0x9E3779B97F4A7C15u ^
             static_cast<std::size_t>(s.block);
    }
  };
};

struct PreparedCall {
  nb::object name;    // of the algorithm
  nb::object choice;  // of `auto`, see choice_cache.py, or None
  int code, algorithm, dtype;
  std::unordered_map<std::uint32_t, double> predicted;  // seconds by rounded nnz
  Totals::Times* times;
};

class PreparedCalls {
 public:
  PreparedCalls(nb::object host, nb::object loop, nb::object transport, nb::object stats,
                nb::object busy, nb::object state, nb::object totals, nb::object stream,
                nb::object frombuffer, nb::object uint32)
      : host_(std::move(host)),
        loop_owner_(std::move(loop)),
        transport_(std::move(transport)),
        control_(transport_.attr("control")),
        stats_(std::move(stats)),
        acquire_(busy.attr("acquire")),
        release_(busy.attr("release")),
        state_owner_(std::move(state)),
        totals_owner_(std::move(totals)),
        stream_(std::move(stream)),
        frombuffer_(std::move(frombuffer)),
        uint32_(std::move(uint32)),
        loop_(nb::cast<MessageLoop&>(loop_owner_)),
        state_(nb::cast<CallState&>(state_owner_)),
        totals_(nb::cast<Totals&>(totals_owner_)),
        forks_(forks()) {}

  // Prepares the calls of a shape, for vectors whose nnz rounds like this one.
  void prepare(nb::object algorithm, nb::object dtype, std::int64_t size, std::int64_t block,
               nb::object name, nb::object choice, int code, int number, int dtype_code,
               std::uint32_t nnz, double predicted);

  // Returns the sum, or None if Python must make this call.
  nb::object allreduce(nb::handle x, nb::handle op, nb::handle algorithm);

  // Returns whether an error has left a call of this thread unfinished, whose lock the caller
  // then releases.
  bool take_over() {
    const bool is_held = holder_ == PyThread_get_thread_ident();
    if (is_held) holder_ = 0;
    return is_held;
  }

  void clear() { calls_.clear(); }

  // For Python's collector of cycles: visits the objects that may refer to this one.
  template <class F>
  int visit(F each) {
    for (nb::object* object : {&host_, &loop_owner_, &transport_, &control_, &stats_, &acquire_,
                               &release_, &state_owner_, &totals_owner_})
      if (const int stop = each(*object)) return stop;
    return 0;
  }

  // The number of times that this process was forked from another.
  static int& forks();

 private:
  struct Names {  // interned
    nb::object size = name("size"), block = name("block"), fill = name("fill"),
               indices = name("raw_indices"), values = name("raw_values"),
               scratch = name("_scratch"), dtype = name("dtype"), trace = name("trace"),
               sent = name("sent"), failure = name("failure"), calls = name("calls"),
               recheck = name("recheck"), algorithm = name("algorithm"),
               result_nnz = name("result_nnz"), max_calls = name("max_calls"),
               sum = name("sum");
    static nb::object name(const char* text) {
      return nb::steal(PyUnicode_InternFromString(text));
    }
  };

  static nb::object get(nb::handle object, const nb::object& name) {
    PyObject* found = PyObject_GetAttr(object.ptr(), name.ptr());
    if (!found) throw nb::python_error();
    return nb::steal(found);
  }
  static std::int64_t integer(nb::handle object, const nb::object& name) {
    return nb::cast<std::int64_t>(get(object, name));
  }
  static void set(nb::handle object, const nb::object& name, nb::handle value) {
    if (PyObject_SetAttr(object.ptr(), name.ptr(), value.ptr())) throw nb::python_error();
  }

  bool holds(const PreparedCall& call) const;
  template <class T>
  void record(const PreparedCall& call, const CallShape& shape, const ms::Vector<T>& x) const;
  bool may_start() const;
  bool acquire();
  void release();

  const double* prediction(const PreparedCall& call, const CallShape& shape, std::size_t nnz,
                           bool is_dense) const;

  // Runs a call; `stream` returns its input, for errors.
  template <class T>
  ms::Vector<T> run(PreparedCall& call, const CallShape& shape, const ms::Vector<T>& x,
                    double predicted, const std::function<nb::object()>& stream);
  template <class T>
  nb::object stream_of(const CallShape& shape, const ms::Vector<T>& x) const;
  nb::object array(const ms::Shared& memory, const void* data, std::size_t count,
                   std::size_t nbytes, const nb::object& dtype) const;

  const Names names_;
  nb::object host_, loop_owner_, transport_, control_, stats_, acquire_, release_, state_owner_,
      totals_owner_;
  const nb::object stream_, frombuffer_, uint32_, zero_ = nb::float_(0.0);
  MessageLoop& loop_;
  CallState& state_;
  Totals& totals_;
  const int forks_;
  unsigned long holder_ = 0;  // the thread that is in a call
  std::unordered_map<CallShape, std::shared_ptr<PreparedCall>, CallShape::Hash> calls_;
};
