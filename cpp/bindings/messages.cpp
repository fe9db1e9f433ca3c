#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "bindings/arrays.h"
#include "bindings/message_memory.h"
#include "messages/mpi_channel.h"

namespace {

constexpr std::size_t mpi_functions = 8, mpi_handles = 11;

int lend(PyObject* self, Py_buffer* view, int flags) {
  const ms::Shared& memory = nb::inst_ptr<MessageMemory>(self)->memory;
  return PyBuffer_FillInfo(view, self, memory->data, static_cast<Py_ssize_t>(memory->size), 0,
                           flags);
}

PyType_Slot memory_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(lend)}, {0, nullptr}};

template <class Handle>
std::unique_ptr<ms::Channel> mpi_channel(int rank, int size, const std::vector<std::size_t>& at,
                                         const std::vector<std::size_t>& handles,
                                         int any_source, int any_tag, std::size_t tag_at,
                                         std::size_t segment_bytes, std::size_t paced_bytes,
                                         const ms::WaitPolicy& policy) {
  ms::MpiFunctions<Handle> mpi;
  static_assert(sizeof mpi == mpi_functions * sizeof(std::size_t));
  std::memcpy(&mpi, at.data(), sizeof mpi);
  std::array<Handle, mpi_handles> h;
  for (std::size_t i = 0; i < mpi_handles; ++i) std::memcpy(&h[i], &handles[i], sizeof h[i]);
  const ms::MpiSettings<Handle> settings{h[0],
                                         h[1],
                                         h[2],
                                         {h[3], h[4], h[5], h[6]},
                                         {h[7], h[8], h[9], h[10]},
                                         any_source,
                                         any_tag,
                                         tag_at,
                                         segment_bytes,
                                         paced_bytes};
  return std::make_unique<ms::MpiChannel<Handle>>(rank, size, mpi, settings, policy);
}

}  // namespace

void register_messages(nb::module_& m) {
  nb::class_<MessageMemory>(m, "MessageMemory", nb::type_slots(memory_slots),
                            "Memory of a result; it has the buffer protocol.");
  m.def(
      "message_memory",
      [](std::size_t nbytes) {
        const auto memory = nb::cast(MessageMemory{std::make_shared<ms::BlockMemory>(nbytes)});
        return nb::steal(PyMemoryView_FromObject(memory.ptr()));
      },
      "nbytes"_a, nb::sig("def message_memory(nbytes: int) -> memoryview"),
      "Return memory that later messages reuse.");
  m.def(
      "release_messages", [] { return ms::BlockPool::instance().release(); },
      "Free the unused memory of messages; return its bytes.");
  nb::class_<ms::Channel>(m, "Channel", "What moves the messages of compiled collectives.");
  m.def(
      "host_channel",
      [](int rank, int size) -> std::unique_ptr<ms::Channel> {
        return std::make_unique<ms::HostChannel>(rank, size);
      },
      "rank"_a, "size"_a, "Return a channel whose messages the host moves.");
  m.def(
      "mpi_channel",
      [](int rank, int size, int handle_bytes, std::vector<std::size_t> functions,
         std::vector<std::size_t> handles, int any_source, int any_tag, std::size_t tag_at,
         std::size_t segment_bytes, std::size_t paced_bytes, double spin, double give_way) {
        require(functions.size() == mpi_functions && handles.size() == mpi_handles,
                "mpi_channel: there must be 8 functions and 11 handles");
        require(handle_bytes == 4 || handle_bytes == 8,
                "mpi_channel: handles must have 4 or 8 bytes");
        const ms::WaitPolicy policy{spin, give_way};
        const auto make = handle_bytes == 4 ? mpi_channel<std::int32_t> : mpi_channel<void*>;
        return make(rank, size, functions, handles, any_source, any_tag, tag_at, segment_bytes,
                    paced_bytes, policy);
      },
      "rank"_a, "size"_a, "handle_bytes"_a, "functions"_a, "handles"_a, "any_source"_a,
      "any_tag"_a, "tag_at"_a, "segment_bytes"_a, "paced_bytes"_a, "spin"_a, "give_way"_a,
      "Return a channel through functions of an MPI library, given by their addresses. The "
      "handles are those of the communicators for messages and control messages, of bytes, and "
      "of the types and operations in the order of headers.");
}
