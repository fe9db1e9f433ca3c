#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>

#include "bindings/message_loop.h"
#include "messages/mpi_channel.h"

namespace {

int lend(PyObject* self, Py_buffer* view, int flags) {
  const ms::Shared& memory = nb::inst_ptr<MessageMemory>(self)->memory;
  return PyBuffer_FillInfo(view, self, memory->data, static_cast<Py_ssize_t>(memory->size), 0,
                           flags);
}

PyType_Slot memory_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(lend)}, {0, nullptr}};

Returned run_barrier(MessageLoop& loop, nb::handle host, int code, std::uint32_t sequence,
                     bool traced, int dtype) {
  return loop.run(host, {code, sequence, traced}, dtype, 0, 1, 0, [](ms::Call& call) {
    ms::barrier(call);
    call.finish();
    nb::gil_scoped_acquire gil;
    return nb::object(nb::none());
  });
}

Returned run_agree(MessageLoop& loop, nb::handle host, int code, std::uint32_t sequence,
                   bool traced, int round, int dtype, std::uint32_t blocks, std::uint32_t block,
                   std::uint32_t nnz) {
  return loop.run(host, {code, sequence, traced}, dtype, blocks, block, 0, [&](ms::Call& call) {
    const ms::Header own = description(call, round, nnz);
    const auto headers = ms::agree(call, own);
    call.finish();
    nb::gil_scoped_acquire gil;
    if (!same(headers, own))
      return nb::object(nb::bytes(headers.data(), headers.size() * ms::header_bytes));
    nb::list counts;
    for (const ms::Header& h : headers) counts.append(h.nnz);
    return nb::object(nb::tuple(counts));
  });
}

template <class Handle>
std::unique_ptr<MessageLoop> mpi_loop(int rank, int size, const std::vector<std::size_t>& at,
                                      const std::vector<std::size_t>& handles, int any_source,
                                      int any_tag, std::size_t tag_at,
                                      std::size_t segment_bytes, std::size_t paced_bytes,
                                      const ms::WaitPolicy& policy) {
  ms::MpiFunctions<Handle> mpi;
  static_assert(sizeof mpi == 8 * sizeof(std::size_t));
  std::memcpy(&mpi, at.data(), sizeof mpi);
  const auto handle = [&](std::size_t i) {
    Handle h;
    std::memcpy(&h, &handles[i], sizeof h);
    return h;
  };
  const ms::MpiSettings<Handle> settings{handle(0), handle(1), handle(2),     any_source,
                                         any_tag,   tag_at,    segment_bytes, paced_bytes};
  return std::make_unique<MessageLoop>(
      std::make_unique<ms::MpiChannel<Handle>>(rank, size, mpi, settings, policy), false);
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
  nb::class_<MessageLoop> loop(m, "MessageLoop",
                               "Collectives whose rounds run without the GIL.");
  loop.def("poll", &MessageLoop::poll,
           "Make progress in the current wait; return whether over.")
      .def("barrier", run_barrier, "host"_a, "code"_a, "sequence"_a, "traced"_a, "dtype"_a,
           "Wait for all ranks; return the counters.")
      .def("agree", run_agree, "host"_a, "code"_a, "sequence"_a, "traced"_a, "round"_a,
           "dtype"_a, "blocks"_a, "block"_a, "nnz"_a,
           "Return the nnz of all ranks, or their headers if they differ, and the counters.");
  register_gathers(m, loop);
  register_reductions(loop);
  m.def(
      "host_loop",
      [](int rank, int size) {
        return std::make_unique<MessageLoop>(std::make_unique<ms::HostChannel>(rank, size),
                                             true);
      },
      "rank"_a, "size"_a, "Return a loop whose messages the host moves.");
  m.def(
      "mpi_loop",
      [](int rank, int size, int handle_bytes, std::vector<std::size_t> functions,
         std::vector<std::size_t> handles, int any_source, int any_tag, std::size_t tag_at,
         std::size_t segment_bytes, std::size_t paced_bytes, double spin, double give_way) {
        require(functions.size() == 8 && handles.size() == 3,
                "mpi_loop: there must be 8 functions and 3 handles");
        require(handle_bytes == 4 || handle_bytes == 8,
                "mpi_loop: handles must have 4 or 8 bytes");
        const ms::WaitPolicy policy{spin, give_way};
        const auto make = handle_bytes == 4 ? mpi_loop<std::int32_t> : mpi_loop<void*>;
        return make(rank, size, functions, handles, any_source, any_tag, tag_at, segment_bytes,
                    paced_bytes, policy);
      },
      "rank"_a, "size"_a, "handle_bytes"_a, "functions"_a, "handles"_a, "any_source"_a,
      "any_tag"_a, "tag_at"_a, "segment_bytes"_a, "paced_bytes"_a, "spin"_a, "give_way"_a,
      "Return a loop over functions of an MPI library, given by their addresses.");
}
