// Which call of a communicator is in progress, and what its compiled calls have counted.
#pragma once

#include <nanobind/nanobind.h>

#include <map>
#include <string>

#include "messages/call.h"

namespace nb = nanobind;
namespace ms = sparcml::messages;

// The number of the current or last call, and its name, which is formatted when it is read.
struct CallState {
  std::uint64_t sequence = 0;
  nb::object name = nb::str("start");
  bool is_over = false;

  std::uint64_t begin(nb::object call) {
    name = std::move(call), is_over = false;
    return ++sequence;
  }
  nb::str describe() const {
    return nb::str("{}{} #{}").format(is_over ? "after " : "", name, sequence);
  }
};

// Sums of the counters of calls that Python has not counted yet.
struct Totals {
  struct Times {
    std::int64_t calls = 0;
    double predicted = 0, measured = 0;
  };
  ms::Counters counters;
  std::map<std::string, Times> allreduces;  // elements keep their addresses
  bool is_empty = true;

  void add(const ms::Counters& c) {
    is_empty = false;
    counters.add(c);
  }
};
