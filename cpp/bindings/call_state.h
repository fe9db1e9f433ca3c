// Which call of a communicator is in progress.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

namespace nb = nanobind;

// The number of the current or last call, and its name, which is formatted when it is read. One
// call at a time: the GIL protects the fields.
struct CallState {
  std::uint64_t sequence = 0;
  nb::object name = nb::str("start");
  bool is_busy = false, is_over = false, is_closed = false;

  // Begins the next call.
  void begin(nb::handle call) {
    if (is_busy) {
      PyErr_Format(PyExc_RuntimeError,
                   "%S: another thread is using this communicator; give each thread its own "
                   "with duplicate()",
                   call.ptr());
      throw nb::python_error();
    }
    is_busy = true, is_over = false;
    name = nb::borrow(call);
    ++sequence;
  }
  void end() { is_over = true, is_busy = false; }

  // Ends a call that has failed; errors continue to name it.
  void fail() { is_busy = false; }

  nb::str describe() const {
    return nb::str("{}{} #{}").format(is_over ? "after " : "", name, sequence);
  }
};

// What the messages of a call say of it, and what its errors say.
struct Identity {
  nb::object name, op;  // of the collective and the operation, as the caller names it
  std::uint8_t code;    // of both in headers, see collectives/base.py

  static constexpr int mean = 4;

  int algorithm() const { return code >> 3; }
  bool is_mean() const { return (code & 7) == mean; }
  int reduction() const { return is_mean() ? 0 : code & 7; }
};

// The call that compiled code is in, for errors.
struct CurrentCall {
  Identity identity;
  std::uint64_t sequence = 0;
  nb::object x, quantizer;  // of this rank; None if there are none
};
