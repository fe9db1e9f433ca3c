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
#include <limits>
#include <type_traits>

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

template <Op op, class T>
inline T combine(T a, T b) {
  if constexpr (op == Op::sum) return canonical(a + b);
  if constexpr (op == Op::prod) return canonical(a * b);
  if (a != a || b != b) return std::numeric_limits<T>::quiet_NaN();
  if constexpr (op == Op::min) return a < b ? a : b < a ? b : __builtin_signbit(a) ? a : b;
  return a > b ? a : b > a ? b : __builtin_signbit(a) ? b : a;
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
