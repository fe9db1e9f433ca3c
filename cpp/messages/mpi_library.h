// Functions and handles of an MPI library that the process has loaded, with the protocol of
// transport/mpi.py.
//
// Handles are integers of 4 bytes in MPICH and its relatives, and pointers in Open MPI. The
// layout of a status is private to the library, but for the place of its tag.
#pragma once

#include <array>
#include <cstddef>

namespace sparcml::messages {

template <class Handle>
struct MpiFunctions {
  using Status = void*;
  int (*isend)(const void*, int, Handle, int, int, Handle, Handle*);
  int (*irecv)(void*, int, Handle, int, int, Handle, Handle*);
  int (*improbe)(int, int, Handle, int*, Handle*, Status);
  int (*imrecv)(void*, int, Handle, Handle*, Handle*);
  int (*iprobe)(int, int, Handle, int*, Status);
  int (*get_count)(const void*, Handle, int*);
  int (*test)(Handle*, int*, Status);
  int (*iallreduce)(const void*, void*, int, Handle, Handle, Handle, Handle*);
};

// Constants of the library, and of the protocol.
template <class Handle>
struct MpiSettings {
  Handle comm, control, byte;
  std::array<Handle, 4> types, ops;  // in the order of their numbers in headers
  int any_source, any_tag;
  std::size_t tag_at;  // offset of the tag in a status
  std::size_t segment_bytes;
  std::size_t paced_bytes;  // of a segment of a paced message, or 0; see pacing.h
};

enum MpiTag : int { whole_tag, length_tag, segment_tag };

}  // namespace sparcml::messages
