#include "kernels/isa.h"

#include <atomic>
#include <cstdlib>
#include <stdexcept>

#ifdef SPARCML_X86
#include <cpuid.h>
#endif

namespace sparcml {
namespace {

#ifdef SPARCML_X86
// Not every compiler's __builtin_cpu_supports knows these two.
bool has_f16c_and_lzcnt() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool f16c = __get_cpuid(1, &a, &b, &c, &d) && (c >> 29 & 1);
  return f16c && __get_cpuid(0x80000001, &a, &b, &c, &d) && (c >> 5 & 1);
}
#endif

}  // namespace

const char* name(Isa isa) { return isa == Isa::avx2 ? "avx2" : "scalar"; }

std::vector<Isa> available_isas() {
  std::vector<Isa> found;
#ifdef SPARCML_X86
  __builtin_cpu_init();
  // All extensions that the AVX2 files are compiled for came with the same processors (Haswell,
  // Zen).
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
      __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt") &&
      __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.2") &&
      has_f16c_and_lzcnt())
    found.push_back(Isa::avx2);
#endif
  found.push_back(Isa::scalar);
  return found;
}

namespace {

Isa parse(const std::string& wanted) {
  std::string known;
  for (Isa isa : available_isas()) {
    if (wanted == name(isa)) return isa;
    known += known.empty() ? "" : ", ";
    known += name(isa);
  }
  throw std::invalid_argument("SPARCML_ISA must be one of " + known +
                              " on this processor, got '" + wanted + "'");
}

std::atomic<Isa>& chosen() {
  static std::atomic<Isa> isa = [] {
    const char* wanted = std::getenv("SPARCML_ISA");
    return wanted && *wanted ? parse(wanted) : available_isas().front();
  }();
  return isa;
}

}  // namespace

Isa active_isa() { return chosen().load(std::memory_order_relaxed); }

void use_isa(const std::string& wanted) { chosen().store(parse(wanted)); }

}  // namespace sparcml
