// The instruction set that the kernels run on, chosen once at run time.
//
// A kernel is a function with one definition per instruction set, in a namespace of that name:
// <family>/scalar.cpp and <family>/avx2.cpp, or <family>/generic.cpp, one source for all of
// them that is left to the compiler to vectorise. Its family's header declares it once, and a
// call of that name runs the active definition.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#ifdef __x86_64__
#define SPARCML_X86
#endif

// The namespace of the instruction set that is compiled; avx2.cpp.in defines it for the other.
#ifndef SPARCML_NAMESPACE
#define SPARCML_NAMESPACE scalar
#endif

namespace sparcml {

enum class Isa { scalar, avx2 };

const char* name(Isa isa);
std::vector<Isa> available_isas();      // supported by this processor, best first
Isa active_isa();                       // SPARCML_ISA if set, else the best
void use_isa(const std::string& name);  // throws std::invalid_argument if not available

// The definitions of a kernel. A loop that calls it often calls active() once.
template <class Return, class... Parameters>
class Kernel {
 public:
  using Function = Return (*)(Parameters...);

  constexpr Kernel(Return (*scalar)(Parameters...), Return (*avx2)(Parameters...))
      : scalar_(scalar), avx2_(avx2) {}

  Function active() const { return active_isa() == Isa::avx2 ? avx2_ : scalar_; }

  Return operator()(Parameters... parameters) const { return active()(parameters...); }

 private:
  Function scalar_, avx2_;
};

// The best instruction set of the target: other processors have the scalar definitions only.
#ifdef SPARCML_X86
#define SPARCML_BEST avx2
#else
#define SPARCML_BEST scalar
#endif

// Selects the function of the active instruction set.
#define SPARCML_PICK(function) \
  (::sparcml::active_isa() == ::sparcml::Isa::avx2 ? SPARCML_BEST::function : scalar::function)

// Declares a kernel: what it returns, its name, its parameters.
#define SPARCML_KERNEL(Return, name, ...) \
  namespace scalar {                      \
  Return name(__VA_ARGS__);               \
  }                                       \
  namespace avx2 {                        \
  Return name(__VA_ARGS__);               \
  }                                       \
  inline constexpr Kernel name { scalar::name, SPARCML_BEST::name }

// Declares a kernel that is a template of a type T, and is called as name<T>.
#define SPARCML_KERNEL_OF_T(Return, name, ...) \
  namespace scalar {                           \
  template <class T>                           \
  Return name(__VA_ARGS__);                    \
  }                                            \
  namespace avx2 {                             \
  template <class T>                           \
  Return name(__VA_ARGS__);                    \
  }                                            \
  template <class T>                           \
  inline constexpr Kernel name {               \
    scalar::name<T>, SPARCML_BEST::name<T>     \
  }

// Instantiates the definitions above this line for the types of values, or for the real ones.
#define SPARCML_FOR_REALS(name)               \
  template decltype(name<float>) name<float>; \
  template decltype(name<double>) name<double>
#define SPARCML_FOR_NUMBERS(name)                           \
  SPARCML_FOR_REALS(name);                                  \
  template decltype(name<std::int32_t>) name<std::int32_t>; \
  template decltype(name<std::int64_t>) name<std::int64_t>

}  // namespace sparcml
