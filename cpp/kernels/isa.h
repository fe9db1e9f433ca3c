// The instruction set that the kernels run on, chosen once at run time.
#pragma once

#include <string>
#include <vector>

#if defined(__x86_64__)
#define SPARCML_X86 1
#endif

namespace sparcml {

enum class Isa { scalar, avx2 };

const char* name(Isa isa);
std::vector<Isa> available_isas();      // supported by this processor, best first
Isa active_isa();                       // SPARCML_ISA if set, else the best
void use_isa(const std::string& name);  // throws std::invalid_argument if not available

// Selects the function of the active instruction set.
#ifdef SPARCML_X86
#define SPARCML_PICK(function) \
  (::sparcml::active_isa() == ::sparcml::Isa::avx2 ? avx2::function : scalar::function)
#else
#define SPARCML_PICK(function) (scalar::function)
#endif

}  // namespace sparcml
