// A linear model whose steps cost only their nonzeros.
//
// A step is w = soft((1 - rate l2) w - rate m, rate l1), m = momentum m + gradient, for all
// coordinates, but only those with a gradient are written. Weights are stored as scale * v, so
// that l2 changes one number. The updates by l1 or momentum that are pending for a coordinate
// since its last step follow from a table with one number per step:

//   l1:       table[t] = sum of rate l1 / scale over the steps up to t,
//             v is due |v| - (table[now] - table[last]), not beyond zero;
//   momentum: table[t] = sum over the steps s after t of rate momentum^(s - t) / scale,
//             v is due v - velocity table[last].
//
// An adaptive step (Duchi, Hazan, Singer: Adaptive Subgradient Methods, 2011) has one rate per
// coordinate, rate / sqrt(damping + squares), with squares the sum of its squared gradients.
// Then there is no common factor of all weights. Instead a step is

//   squares += gradient^2, w = flow(w - rate_j gradient, rate_j)
// where flow(w, t) is the solution of w' = -(l1 sign w + l2 w) after time t. Times add up,
// flow(flow(w, s), t) = flow(w, s + t), so table[t] = sum of rates up to t gives the pending
// time. Weights and squares are neighbours in memory, because they are always needed together.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

namespace sparcml::linear {

enum class Lazy { none, l1, momentum, adaptive, adaptive_penalty };

constexpr bool is_adaptive(Lazy lazy) {
  return lazy == Lazy::adaptive || lazy == Lazy::adaptive_penalty;
}

template <class T>
struct Model {
  T* weights;            // if adaptive, each followed by its squares
  T* velocity;           // momentum only
  std::uint32_t* last;   // the step of the last update of each weight
  double* table;         // one number per step, and one more
  const double* powers;  // of momentum, until they are negligible
  std::size_t window;    // number of powers
  double* numbers;       // scale, clock, intercept, its velocity; adaptive: its squares too
  std::size_t features;
  bool adaptive;
  double damping;  // adaptive only
  double l1, l2;

  double& scale() const { return numbers[0]; }
  double& clock() const { return numbers[1]; }
  double& intercept() const { return numbers[2]; }
  double& drift() const { return numbers[3]; }
  double& intercept_squares() const { return numbers[4]; }
  std::size_t now() const { return static_cast<std::size_t>(clock()); }
  Lazy lazy() const {
    if (adaptive) return last ? Lazy::adaptive_penalty : Lazy::adaptive;
    return velocity ? Lazy::momentum : last ? Lazy::l1 : Lazy::none;
  }
};

// Returns the position of the weight of a coordinate.
template <Lazy lazy, class T>
inline T* place(const Model<T>& m, std::size_t j) {
  return m.weights + (is_adaptive(lazy) ? 2 * j : j);
}

inline double soft(double v, double by) { return v > by ? v - by : v < -by ? v + by : 0.0; }

inline double flow(double w, double time, double l1, double l2) {
  if (l2 == 0.0) return soft(w, time * l1);
  const double shrunk = std::expm1(-time * l2);
  return soft(w * (1.0 + shrunk), -shrunk * (l1 / l2));
}

// Returns v of a coordinate with all pending updates applied.
template <Lazy lazy, class T>
inline double due(const Model<T>& m, std::size_t now, std::size_t j) {
  const T* const at = place<lazy>(m, j);
  const double v = at[0];
  if constexpr (lazy == Lazy::adaptive_penalty)
    return flow(v, (m.table[now] - m.table[m.last[j]]) / std::sqrt(m.damping + at[1]), m.l1,
                m.l2);
  if constexpr (lazy == Lazy::l1) return soft(v, m.table[now] - m.table[m.last[j]]);
  if constexpr (lazy == Lazy::momentum)
    return v - static_cast<double>(m.velocity[j]) * m.table[m.last[j]];
  return v;
}

template <class T>
inline double decay(const Model<T>& m, std::size_t steps) {
  return steps < m.window ? m.powers[steps] : 0.0;
}

template <class T, class Body>
inline void with_lazy(const Model<T>& m, Body body) {
  switch (m.lazy()) {
    case Lazy::none:
      return body(std::integral_constant<Lazy, Lazy::none>{});
    case Lazy::l1:
      return body(std::integral_constant<Lazy, Lazy::l1>{});
    case Lazy::momentum:
      return body(std::integral_constant<Lazy, Lazy::momentum>{});
    case Lazy::adaptive:
      return body(std::integral_constant<Lazy, Lazy::adaptive>{});
    default:
      return body(std::integral_constant<Lazy, Lazy::adaptive_penalty>{});
  }
}

// Applies the pending updates of all coordinates and starts a new table.
template <Lazy lazy, class T>
void settle_all(const Model<T>& m) {
  constexpr bool listed = lazy != Lazy::none && lazy != Lazy::adaptive;  // by last and table
  const std::size_t now = m.now();
  const double scale = m.scale();
  m.scale() = 1.0;
  m.clock() = 0.0;
  if (!listed && scale == 1.0) return;
  for (std::size_t j = 0; j < m.features; ++j) {
    *place<lazy>(m, j) = static_cast<T>(scale * due<lazy>(m, now, j));
    if constexpr (lazy == Lazy::momentum)
      m.velocity[j] = static_cast<T>(m.velocity[j] * decay(m, now - m.last[j]));
    if constexpr (listed) m.last[j] = 0;
  }
  if constexpr (listed) m.table[0] = 0.0;
}

constexpr double kSmallScale = 1e-6;  // limit that keeps v = w / scale in range

// A step: `begin` once, then `move` for the coordinates that have a gradient, each once.
template <Lazy lazy, class T>
struct Step {
  const Model<T>& m;
  double rate, factor;
  std::size_t now;

  Step(const Model<T>& model, double given) : m(model), rate(given) {
    if constexpr (is_adaptive(lazy))
      begin_adaptive();
    else
      begin();
  }

  void begin() {
    if (!(rate * m.l2 < 1.0))
      throw std::invalid_argument(
          "rate * l2 must be below 1, or a step would flip the sign of the weights; lower one "
          "of them");
    if (m.scale() < kSmallScale) settle_all<lazy>(m);
    m.scale() *= 1.0 - rate * m.l2;
    m.clock() += 1.0;
    now = m.now();
    factor = rate / m.scale();
    if constexpr (lazy == Lazy::l1) m.table[now] = m.table[now - 1] + factor * m.l1;
    if constexpr (lazy == Lazy::momentum) {
      m.table[now] = 0.0;
      for (std::size_t k = 1; k < m.window && k <= now; ++k)
        m.table[now - k] += factor * m.powers[k];
    }
  }

  void begin_adaptive() {
    m.clock() += 1.0;
    now = m.now();
    factor = rate;
    if constexpr (lazy == Lazy::adaptive_penalty) m.table[now] = m.table[now - 1] + rate;
  }

  void move(std::size_t j, T gradient) const {
    if constexpr (lazy == Lazy::adaptive) {
      T* const at = place<lazy>(m, j);
      at[1] += gradient * gradient;
      at[0] -= static_cast<T>(rate) * gradient / std::sqrt(static_cast<T>(m.damping) + at[1]);
    } else if constexpr (lazy == Lazy::adaptive_penalty) {
      T* const at = place<lazy>(m, j);
      const double v = due<lazy>(m, now - 1, j);
      at[1] += gradient * gradient;
      const double own = rate / std::sqrt(m.damping + at[1]);
      at[0] = static_cast<T>(flow(v - own * gradient, own, m.l1, m.l2));
      m.last[j] = static_cast<std::uint32_t>(now);
    } else if constexpr (lazy == Lazy::l1) {
      const double v = due<lazy>(m, now - 1, j) - factor * gradient;
      m.weights[j] = static_cast<T>(soft(v, m.table[now] - m.table[now - 1]));
      m.last[j] = static_cast<std::uint32_t>(now);
    } else if constexpr (lazy == Lazy::momentum) {
      m.weights[j] = static_cast<T>(due<lazy>(m, now, j) - factor * gradient);
      m.velocity[j] = static_cast<T>(m.velocity[j] * decay(m, now - m.last[j]) + gradient);
      m.last[j] = static_cast<std::uint32_t>(now);
    } else {
      m.weights[j] -= static_cast<T>(factor) * gradient;
    }
  }

  // The learning rate of the intercept is `share` times the rate.
  void move_intercept(double gradient, double share) const {
    if constexpr (is_adaptive(lazy)) {
      m.intercept_squares() += gradient * gradient;
      m.intercept() -= share * rate * gradient / std::sqrt(m.damping + m.intercept_squares());
    } else {
      m.drift() = decay(m, 1) * m.drift() + gradient;
      m.intercept() -= share * rate * m.drift();
    }
  }
};

}  // namespace sparcml::linear
