// Parts of a loop on several cores. Which thread runs a part, and how many threads there are,
// must not change results: parts write to places of their own.
#pragma once

#include <cstddef>

namespace sparcml {

// Number of threads that a kernel may use, itself included.
std::size_t threads();
void set_threads(std::size_t count);

// Number of processors that this process may use.
std::size_t usable_processors();

// Calls call(context, part) for each part below `parts` and returns when all are done. The
// threads are created on first use, again after a fork. Only one caller has them at a time: for
// others, and within a part, the parts run one after the other.
void run_parts(std::size_t parts, void (*call)(void*, std::size_t), void* context);

template <class Work>
void for_parts(std::size_t parts, Work&& work) {
  run_parts(
      parts, [](void* context, std::size_t part) { (*static_cast<Work*>(context))(part); },
      &work);
}

// The begin of a part, if `size` items are divided into `parts`.
inline std::size_t part_begin(std::size_t size, std::size_t parts, std::size_t part) {
  return size / parts * part + size % parts * part / parts;
}

}  // namespace sparcml
