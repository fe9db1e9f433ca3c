// What the scans add to the residual: the gradient, or the term of a momentum that replaces it.
//
// op.h explains the anonymous namespace.
#pragma once

#include "kernels/momentum.h"
#include "kernels/selection/magnitude.h"

namespace sparcml {
namespace {

#ifdef SPARCML_AVX2
inline __m256 broadcast(float x) { return _mm256_set1_ps(x); }
inline __m256d broadcast(double x) { return _mm256_set1_pd(x); }
inline void store(float* to, __m256 x) { _mm256_storeu_ps(to, x); }
inline void store(double* to, __m256d x) { _mm256_storeu_pd(to, x); }
#endif

// Returns the input from `start` on.
template <class T>
inline ResidualInput<T> from(ResidualInput<T> input, std::size_t start) {
  input.residual += start;
  input.gradient += start;
  input.out += start;
  input.size -= start;
  if (input.momentum.u == nullptr) return input;
  input.momentum.u += start;
  input.momentum.velocity += start;
  return input;
}

template <class T>
struct GradientTerm {
  const T* gradient;

  T peek(std::size_t i) const { return gradient[i]; }
  T next(std::size_t i) const { return gradient[i]; }
#ifdef SPARCML_AVX2
  auto wide(std::size_t i) const { return load(gradient + i); }
#endif
};

// next() and wide() also write the new momentum; peek() does not.
template <class T, bool nesterov>
struct MomentumTerm {
  const T* gradient;
  MomentumInput<T> state;

  T peek(std::size_t i) const { return term_of<nesterov>(velocity(i), gradient[i]); }
  T next(std::size_t i) const {
    const T v = velocity(i);
    state.velocity[i] = v;
    return term_of<nesterov>(v, gradient[i]);
  }
#ifdef SPARCML_AVX2
  auto wide(std::size_t i) const {
    const auto g = load(gradient + i);
    const auto v = velocity_of<nesterov>(broadcast(state.momentum), load(state.u + i), g);
    store(state.velocity + i, v);
    return term_of<nesterov>(v, g);
  }
#endif

 private:
  T velocity(std::size_t i) const {
    return velocity_of<nesterov>(state.momentum, state.u[i], gradient[i]);
  }
};

// A large momentum is not read before the next step. If it starts at a cache line, it is
// written past the caches, in words: this does not read the lines first, and lines that are
// written at once are not sent in parts.
constexpr std::size_t kLine = 64, kLarge = 1 << 22;  // bytes

#ifdef SPARCML_AVX2

template <class T>
inline bool past_caches(const T* velocity, std::size_t size) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(velocity) % kLine == 0;
  return velocity && aligned && size * sizeof(T) >= kLarge;
}

template <class T>
inline void write_past_caches(const T* word, T* to) {
  const auto* from = reinterpret_cast<const __m256i*>(word);
  auto* lanes = reinterpret_cast<__m256i*>(to);
  for (std::size_t k = 0; k < kWord * sizeof(T) / 32; ++k)
    _mm256_stream_si256(lanes + k, _mm256_load_si256(from + k));
}

inline void finish_writes() { _mm_sfence(); }

#else

template <class T>
inline bool past_caches(const T*, std::size_t) {
  return false;
}

template <class T>
inline void write_past_caches(const T*, T*) {}

inline void finish_writes() {}

#endif

// Calls f with the term of the input.
template <class T, class F>
inline auto with_term(const ResidualInput<T>& input, F f) {
  const MomentumInput<T>& state = input.momentum;
  if (state.u == nullptr) return f(GradientTerm<T>{input.gradient});
  if (state.nesterov) return f(MomentumTerm<T, true>{input.gradient, state});
  return f(MomentumTerm<T, false>{input.gradient, state});
}

}  // namespace
}  // namespace sparcml
