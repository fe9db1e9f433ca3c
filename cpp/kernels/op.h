// The four reductions, with the same result on every instruction set.
//
//   sum, prod   IEEE, the left operand first
//   min, max    NaN wins; -0 < +0
//   every NaN result is the canonical quiet NaN
//   integers    sums and products wrap around
//
// `identity<Op>()` is the value of an absent entry: combine(identity, x) == x, bit for bit. For
// a sum it is -0.0, because +0.0 would turn -0.0 into +0.0.
//
// Shared headers define functions in an anonymous namespace: every file compiles its own copy
// with its own flags, so that the linker cannot use the code of one instruction set for
// another.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

// Precedes a loop whose arrays may be identical but do not overlap otherwise.
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
inline T identity() {
  if constexpr (op == Op::sum) return T(-0.0);
  if constexpr (std::is_integral_v<T> && op == Op::min) return std::numeric_limits<T>::max();
  if constexpr (std::is_integral_v<T> && op == Op::max) return std::numeric_limits<T>::min();
  if constexpr (op == Op::min) return std::numeric_limits<T>::infinity();
  if constexpr (op == Op::max) return -std::numeric_limits<T>::infinity();
  return T(1);
}

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <class T>
inline Bits<T> bits(T x) {
  return std::bit_cast<Bits<T>>(x);
}

template <class T>
inline T from_bits(Bits<T> b) {
  return std::bit_cast<T>(b);
}

// Returns all ones if the condition holds, else zero.
template <class T>
inline Bits<T> mask(bool holds) {
  return -Bits<T>(holds);
}

// Like combine(), but a NaN result may be any NaN, for loops that make it canonical later in
// bulk. It has no branches: equal operands differ at most in the sign of zero, which an OR or
// an AND of their bits decides, and all ones is a NaN.
template <Op op, class T>
inline T combine_raw(T a, T b) {
  if constexpr (std::is_integral_v<T> && op == Op::sum) return from_bits<T>(bits(a) + bits(b));
  if constexpr (std::is_integral_v<T> && op == Op::prod) return from_bits<T>(bits(a) * bits(b));
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

// Makes every NaN of v[0..n) canonical.
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
