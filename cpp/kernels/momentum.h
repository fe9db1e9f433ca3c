// Momentum of one value, or of a register of them: the same operations in the same order.
//
//   velocity = m u + g;    term = velocity
//   nesterov:  velocity = m (u + g);  term = velocity + g
//
// op.h explains the anonymous namespace.
#pragma once

namespace sparcml {
namespace {

template <bool nesterov, class V>
inline V velocity_of(V momentum, V u, V g) {
  if constexpr (nesterov)
    return momentum * (u + g);
  else
    return momentum * u + g;
}

// Returns what replaces the gradient.
template <bool nesterov, class V>
inline V term_of(V velocity, V g) {
  if constexpr (nesterov)
    return velocity + g;
  else
    return velocity;
}

}  // namespace
}  // namespace sparcml
