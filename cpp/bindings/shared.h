// Functions of `sparcml.kernels._core` that the other extensions of the package call, so that a
// process has one thread pool and one active instruction set.
#pragma once

#include "kernels/ascending/ascending.h"
#include "kernels/isa.h"
#include "kernels/threads/pool.h"

struct SharedFunctions {
  static constexpr const char* name = "sparcml.kernels._core.shared";  // of the capsule

  decltype(&sparcml::active_isa) active_isa;
  decltype(&sparcml::threads) threads;
  decltype(&sparcml::run_parts) run_parts;
  decltype(&sparcml::ascending_prefix) ascending_prefix;
};
