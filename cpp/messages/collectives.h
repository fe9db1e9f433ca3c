// The compiled collectives. Each equals its Python definition, bit for bit and message for
// message; the files are named like those in src/sparcml/collectives.
#pragma once

#include <vector>

#include "messages/vector.h"

namespace sparcml::messages {

// The compiled allreduces, by their numbers in headers.
enum class Algorithm : int {
  ssar_recursive_double = 3,
  ssar_split_allgather = 4,
  dsar_split_allgather = 5,
  native = 6,
  ssar_ring = 15
};
constexpr std::pair<const char*, Algorithm> algorithms[] = {
    {"ssar_recursive_double", Algorithm::ssar_recursive_double},
    {"ssar_split_allgather", Algorithm::ssar_split_allgather},
    {"dsar_split_allgather", Algorithm::dsar_split_allgather},
    {"native", Algorithm::native},
    {"ssar_ring", Algorithm::ssar_ring}};

// Waits until all ranks have arrived.
void barrier(Call& call);

// Returns the headers of all ranks, which describe their vectors, in rank order.
std::vector<Header> agree(Call& call, Header own);

// Returns the messages of all ranks, in rank order; each is complete, but not checked.
std::vector<Message> allgather(Call& call, const Message& own);

// What the other ranks saw of this rank's vector, which values they decode included.
template <class T>
struct Seen {
  std::vector<Vector<T>> parts;  // by owner; this rank's own as it is
  Vector<T> reduced, decoded;    // this rank's range, before and after it is quantized
};

template <class T>
Vector<T> ssar_recursive_double(Call& call, Vector<T> x);
template <class T>
Vector<T> ssar_split_allgather(Call& call, Vector<T> x, Seen<T>* seen = nullptr);
template <class T>
Vector<T> dsar_split_allgather(Call& call, Vector<T> x, Seen<T>* seen = nullptr);
template <class T>
Vector<T> ssar_ring(Call& call, Vector<T> x);

#define SPARCML_FOR_ALL_TYPES(function)                                \
  template Vector<float> function(Call&, Vector<float>);               \
  template Vector<double> function(Call&, Vector<double>);             \
  template Vector<std::int32_t> function(Call&, Vector<std::int32_t>); \
  template Vector<std::int64_t> function(Call&, Vector<std::int64_t>);

#define SPARCML_SPLIT_FOR(function, T) template Vector<T> function(Call&, Vector<T>, Seen<T>*);
#define SPARCML_SPLIT_FOR_ALL_TYPES(function) \
  SPARCML_SPLIT_FOR(function, float)          \
  SPARCML_SPLIT_FOR(function, double)         \
  SPARCML_SPLIT_FOR(function, std::int32_t)   \
  SPARCML_SPLIT_FOR(function, std::int64_t)

}  // namespace sparcml::messages
