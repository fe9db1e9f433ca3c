// One loop for all instruction sets, vectorised by the compiler.
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/mixing/mixing.h"
#include "kernels/op.h"

#ifdef SPARCML_X86
#include <immintrin.h>
#endif

namespace sparcml {
namespace {

constexpr std::size_t kBlock = 1024;  // values whose sums stay in the first-level cache

// Each block is read completely before it is written, so that `out` may be an input.
template <class T>
void sum_block(const double* weights, const T* const* vectors, std::size_t count,
               std::size_t start, std::size_t n, double* total) {
  for (std::size_t k = 0; k < count; ++k) {
    const double w = weights[k];
    const T* v = vectors[k] + start;
    if (k == 0) {
      SPARCML_IVDEP
      for (std::size_t i = 0; i < n; ++i) total[i] = w * static_cast<double>(v[i]);
    } else {
      SPARCML_IVDEP
      for (std::size_t i = 0; i < n; ++i) total[i] += w * static_cast<double>(v[i]);
    }
  }
}

// With the number of vectors known, the sums stay in registers.
template <class T, std::size_t kCount, bool kStep, bool kBase>
void weighted_sum_of(const double* weights, const T* const* vectors, T rate, const T* g,
                     const T* base, T* out, std::size_t n) {
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const T* v[kCount];
  double w[kCount];
  for (std::size_t k = 0; k < kCount; ++k) v[k] = vectors[k], w[k] = weights[k];
  SPARCML_IVDEP
  for (std::size_t i = 0; i < n; ++i) {
    double total = w[0] * static_cast<double>(v[0][i]);
    for (std::size_t k = 1; k < kCount; ++k) total += w[k] * static_cast<double>(v[k][i]);
    T rounded = total == total ? static_cast<T>(total) : nan;
    if (kStep) rounded -= rate * g[i];
    if (kBase) rounded -= base[i];
    out[i] = rounded;
  }
}

template <class T, std::size_t kCount>
void weighted_sum_few(const double* weights, const T* const* vectors, T rate, const T* g,
                      const T* base, T* out, std::size_t n) {
  if (g != nullptr && base != nullptr) {
    weighted_sum_of<T, kCount, true, true>(weights, vectors, rate, g, base, out, n);
  } else if (g != nullptr) {
    weighted_sum_of<T, kCount, true, false>(weights, vectors, rate, g, base, out, n);
  } else if (base != nullptr) {
    weighted_sum_of<T, kCount, false, true>(weights, vectors, rate, g, base, out, n);
  } else {
    weighted_sum_of<T, kCount, false, false>(weights, vectors, rate, g, base, out, n);
  }
}

// An exponent of ones is that of an infinity or a NaN.
template <class T>
bool all_finite(const T* v, std::size_t n) {
  const Bits<T> exponent = bits(std::numeric_limits<T>::infinity());
  Bits<T> found = 0;
  SPARCML_IVDEP
  for (std::size_t i = 0; i < n; ++i) found |= mask<T>((bits(v[i]) & exponent) == exponent);
  return found == 0;
}

// A large result is written past the caches, which spares reading its old values.
template <class T>
void write(const T* from, T* out, std::size_t n, [[maybe_unused]] bool past_caches) {
  std::size_t done = 0;
#ifdef SPARCML_X86
  constexpr std::size_t kLanes = 16 / sizeof(T);
  for (; past_caches && done + kLanes <= n; done += kLanes) {
    const __m128i lanes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + done));
    _mm_stream_si128(reinterpret_cast<__m128i*>(out + done), lanes);
  }
#endif
  std::memcpy(out + done, from + done, (n - done) * sizeof(T));
}

// Makes what `write` has written past the caches visible to other threads.
void finish_writes([[maybe_unused]] bool past_caches) {
#ifdef SPARCML_X86
  if (past_caches) _mm_sfence();
#endif
}

template <class T>
bool is_large(const T* out, std::size_t n) {
  return reinterpret_cast<std::uintptr_t>(out) % 16 == 0 && n * sizeof(T) >= 1 << 22;
}

template <class T, std::size_t kCount>
void add_differences_of(const double* weights, const T* const* vectors, double gamma,
                        const T* own, const T* x, T rate, const T* g, T* out, std::size_t n) {
  const T* v[kCount];
  double w[kCount];
  for (std::size_t k = 0; k < kCount; ++k) v[k] = vectors[k], w[k] = weights[k];
  SPARCML_IVDEP
  for (std::size_t i = 0; i < n; ++i) {
    const double mine = own[i];
    double total = 0;
    for (std::size_t k = 0; k < kCount; ++k)
      total += w[k] * (static_cast<double>(v[k][i]) - mine);
    const T h = x[i] - rate * g[i];
    out[i] = static_cast<T>(static_cast<double>(h) + gamma * total);
  }
}

// Any number of vectors, and a gradient that may be missing.
template <class T>
void add_differences_many(const double* weights, const T* const* vectors, std::size_t count,
                          double gamma, const T* own, const T* x, T rate, const T* g, T* out,
                          std::size_t start, std::size_t n) {
  double total[kBlock];
  for (std::size_t i = 0; i < n; ++i) total[i] = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const double w = weights[k];
    const T* v = vectors[k] + start;
    for (std::size_t i = 0; i < n; ++i) {
      total[i] += w * (static_cast<double>(v[i]) - static_cast<double>(own[i]));
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    const T h = g != nullptr ? x[i] - rate * g[i] : x[i];
    out[i] = static_cast<T>(static_cast<double>(h) + gamma * total[i]);
  }
}

}  // namespace

namespace SPARCML_NAMESPACE {

template <class T>
bool weighted_sum(const double* weights, const T* const* vectors, std::size_t count, T rate,
                  const T* g, const T* base, T* out, std::size_t n) {
  const bool past_caches = is_large(out, n);
  const double one = 1;
  bool finite = true;
  double total[kBlock];
  alignas(64) T block[kBlock], sums[kBlock];
  for (std::size_t start = 0; start < n; start += kBlock) {
    const std::size_t size = n - start < kBlock ? n - start : kBlock;
    const T* step = g ? g + start : g;
    const T* origin = base ? base + start : base;
    const T* v[3];
    for (std::size_t k = 0; k < 3 && k < count; ++k) v[k] = vectors[k] + start;
    if (count == 1) {
      weighted_sum_few<T, 1>(weights, v, rate, step, origin, block, size);
    } else if (count == 2) {
      weighted_sum_few<T, 2>(weights, v, rate, step, origin, block, size);
    } else if (count == 3) {
      weighted_sum_few<T, 3>(weights, v, rate, step, origin, block, size);
    } else {
      sum_block(weights, vectors, count, start, size, total);
      for (std::size_t i = 0; i < size; ++i) sums[i] = static_cast<T>(total[i]);
      v[0] = sums;
      weighted_sum_few<T, 1>(&one, v, rate, step, origin, block, size);
    }
    finite = finite && all_finite(block, size);
    write(block, out + start, size, past_caches);
  }
  finish_writes(past_caches);
  return finite;
}

template <class T>
void add_differences(const double* weights, const T* const* vectors, std::size_t count,
                     double gamma, const T* own, const T* x, T rate, const T* g, T* out,
                     std::size_t n) {
  const bool past_caches = is_large(out, n);
  alignas(64) T block[kBlock];
  for (std::size_t start = 0; start < n; start += kBlock) {
    const std::size_t size = n - start < kBlock ? n - start : kBlock;
    const T* step = g ? g + start : g;
    const T* v[2];
    for (std::size_t k = 0; k < 2 && k < count; ++k) v[k] = vectors[k] + start;
    if (g != nullptr && count == 1) {
      add_differences_of<T, 1>(weights, v, gamma, own + start, x + start, rate, step, block,
                               size);
    } else if (g != nullptr && count == 2) {
      add_differences_of<T, 2>(weights, v, gamma, own + start, x + start, rate, step, block,
                               size);
    } else {
      add_differences_many(weights, vectors, count, gamma, own + start, x + start, rate, step,
                           block, start, size);
    }
    write(block, out + start, size, past_caches);
  }
  finish_writes(past_caches);
}

// The processor waits for memory here, so that nothing is gained by vectors.
template <class T>
void add_differences_at(const std::uint32_t* indices, std::size_t indexed, std::size_t block,
                        const double* weights, const T* const* vectors, std::size_t count,
                        double gamma, const T* own, const T* x, T rate, const T* g, T* out) {
  for (std::size_t at = 0; at < indexed; ++at) {
    const std::size_t start = indices[at] * block;
    for (std::size_t i = start; i < start + block; ++i) {
      const double mine = own[i];
      double total = 0;
      for (std::size_t k = 0; k < count; ++k)
        total += weights[k] * (static_cast<double>(vectors[k][i]) - mine);
      const T h = g != nullptr ? x[i] - rate * g[i] : x[i];
      out[i] = static_cast<T>(static_cast<double>(h) + gamma * total);
    }
  }
}

SPARCML_FOR_REALS(weighted_sum);
SPARCML_FOR_REALS(add_differences);
SPARCML_FOR_REALS(add_differences_at);

}  // namespace SPARCML_NAMESPACE
}  // namespace sparcml
