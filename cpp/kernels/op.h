// The four reductions, with one result for every input in every instruction set.
//
//   sum, prod   IEEE, the left operand first
//   min, max    NaN wins; -0 < +0
//   a NaN result is always the canonical quiet NaN, whatever went in
//
// `neutral<Op>()` is what an absent entry stands for; combine(neutral, x) == x bit for bit
// (for sum that needs -0.0: +0.0 would turn -0.0 into +0.0).
//
// The anonymous namespace is on purpose: every file compiles its own copy with its own flags,
// so the linker can never hand code made for one instruction set to another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

// Before a loop whose arrays may be the same but never overlap otherwise.
#ifdef __clang__
#define SPARCML_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define SPARCML_IVDEP _Pragma("GCC ivdep")
#endif

namespace sparcml {

enum class Op : int { sum, min, max, prod };

namespace {

template <class T>
inline T canonical(T x) {
  return x == x ? x : std::numeric_limits<T>::quiet_NaN();
}

template <Op op, class T>
inline T neutral() {
  if constexpr (op == Op::sum) return T(-0.0);
  if constexpr (op == Op::min) return std::numeric_limits<T>::infinity();
  if constexpr (op == Op::max) return -std::numeric_limits<T>::infinity();
  return T(1);
}

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <class T>
inline Bits<T> bits(T x) {
  Bits<T> b;
  std::memcpy(&b, &x, sizeof b);
  return b;
}

template <class T>
inline T from_bits(Bits<T> b) {
  T x;
  std::memcpy(&x, &b, sizeof x);
  return x;
}

// All ones where the condition holds.
template <class T>
inline Bits<T> mask(bool holds) {
  return -Bits<T>(holds);
}

// As combine(), but a NaN result is any NaN: for loops that make it canonical later, in bulk.
// Nothing branches: equal operands differ in the sign of zero at most, which an OR or an AND
// of their bits decides, and all ones is a NaN.
template <Op op, class T>
inline T combine_raw(T a, T b) {
  if constexpr (op == Op::sum) return a + b;
  if constexpr (op == Op::prod) return a * b;
  const Bits<T> equal = mask<T>(a == b), lost = mask<T>(a != a);
  if constexpr (op == Op::min) {
    const Bits<T> less = mask<T>(a < b);
    return from_bits<T>((bits(a) & (less | equal)) | (bits(b) & ~less) | lost);
  }
  const Bits<T> more = mask<T>(a > b);
  return from_bits<T>(((bits(a) | ~(more | equal)) & (bits(b) | more)) | lost);
}

template <Op op, class T>
inline T combine(T a, T b) {
  return canonical(combine_raw<op>(a, b));
}

// Makes every NaN of v[0..n) the canonical one.
template <class T>
inline void canonicalise(T* v, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) v[i] = canonical(v[i]);
}

// Calls f with the operation as a compile-time constant.
template <class F>
inline auto with_op(Op op, F f) {
  switch (op) {
    case Op::min:
      return f(std::integral_constant<Op, Op::min>{});
    case Op::max:
      return f(std::integral_constant<Op, Op::max>{});
    case Op::prod:
      return f(std::integral_constant<Op, Op::prod>{});
    default:
      return f(std::integral_constant<Op, Op::sum>{});
  }
}

}  // namespace
}  // namespace sparcml
