#include <algorithm>

#include "bindings/reduction_calls.h"
#include "kernels/dense/dense.h"
#include "messages/reduce_pair.h"

namespace {

Returned run_allreduce(MessageLoop& loop, nb::handle host, int code, std::uint32_t sequence,
                       bool traced, int algorithm, int op, int dtype, std::uint32_t blocks,
                       std::uint32_t block, nb::handle indices, nb::handle values) {
  require(block > 0, "allreduce: block must be positive");
  return with_type(dtype, [&](auto zero) {
    auto x = vector_of<decltype(zero)>("allreduce", blocks, block, indices, values);
    return loop.run(host, {code, sequence, traced}, dtype, blocks, block, op,
                    [&](ms::Call& call) {
                      const auto result = reduce(call, algorithm, std::move(x));
                      return result_of(call, result);
                    });
  });
}

ms::GridFormat format_of(const nb::bytes& settings) {
  ms::GridFormat format;
  require(settings.size() == sizeof format, "allreduce: settings must have 8 bytes");
  std::memcpy(&format, settings.c_str(), sizeof format);
  require(format.bits >= 2 && format.bits <= 8 && format.levels >= 1 &&
              format.levels < 1 << (format.bits - 1) && format.norm <= 1 && !format.coder,
          "allreduce: settings must be those of QSGD without a coder");
  return format;
}

template <class T>
nb::object allreduce_quantized(ms::Call& call, int algorithm, ms::Vector<T> x,
                               bool wants_seen) {
  ms::Seen<T> seen;
  const auto run = algorithm == 4 ? ms::ssar_split_allgather<T> : ms::dsar_split_allgather<T>;
  const ms::Vector<T> result = run(call, std::move(x), wants_seen ? &seen : nullptr);
  call.finish();
  nb::gil_scoped_acquire gil;
  if (!wants_seen) return nb::make_tuple(result_of(call, result), nb::none());
  nb::list parts;
  for (const auto& part : seen.parts) parts.append(result_of(call, part));
  parts.append(result_of(call, seen.reduced));
  parts.append(result_of(call, seen.decoded));
  return nb::make_tuple(result_of(call, result), parts);
}

// `own` and `reduced` are the settings of a grid for vectors and for sums. Returns the result,
// the parts that the ranks saw if `wants_seen`, and the counters.
Returned run_quantized(MessageLoop& loop, nb::handle host, int code, std::uint32_t sequence,
                       bool traced, int algorithm, int op, int dtype, std::uint32_t blocks,
                       std::uint32_t block, nb::handle indices, nb::handle values,
                       nb::bytes own, nb::bytes reduced, std::uint64_t seed, bool wants_seen) {
  require(block > 0, "allreduce: block must be positive");
  require(dtype == 1 || dtype == 2, "allreduce: quantized values must be floats");
  const ms::Quantization quantization{format_of(own), format_of(reduced), seed};
  const auto run = [&](auto zero) {
    auto x = vector_of<decltype(zero)>("allreduce", blocks, block, indices, values);
    return loop.run(host, {code, sequence, traced, &quantization}, dtype, blocks, block, op,
                    [&](ms::Call& call) {
                      return allreduce_quantized(call, algorithm, std::move(x), wants_seen);
                    });
  };
  return dtype == 1 ? run(float{}) : run(double{});
}

// Returns whether the result has a NaN, and the counters. With a code of an agreement, the
// ranks exchange headers first; if these differ, they are the result, and nothing is reduced.
Returned run_native(MessageLoop& loop, nb::handle host, int agreement, std::uint32_t sequence,
                    bool traced, int dtype, std::uint32_t blocks, std::uint32_t block, int op,
                    std::uint64_t type, std::uint64_t handle, nb::handle values,
                    nb::handle out) {
  const ms::Shared from = memory_of(values), to = memory_of(out);
  require(from->size == to->size && to->writable,
          "native: out must be writable and have the size of values");
  const std::size_t item = with_type(dtype, [](auto zero) { return sizeof zero; });
  const ms::NativeCall native{from->data, to->data, from->size / item, item, type, handle};
  bool found = false;
  const Identity id{std::max(agreement, 0), sequence, traced};
  return loop.run(host, id, dtype, blocks, block, op, [&](ms::Call& call) {
    if (agreement >= 0) {
      const ms::Header own = description(call, 0, blocks);
      const auto headers = ms::agree(call, own);
      call.finish();
      if (!same(headers, own)) {
        nb::gil_scoped_acquire gil;
        return nb::object(nb::bytes(headers.data(), headers.size() * ms::header_bytes));
      }
    }
    {
      ms::Timer timer(call, ms::wait_phase);
      const auto search = [&](std::size_t start, std::size_t count) {
        const std::uint8_t* part = native.out + start * item;
        if (dtype == 1)
          found |= sparcml::has_nan<float>(reinterpret_cast<const float*>(part), count);
        if (dtype == 2)
          found |= sparcml::has_nan<double>(reinterpret_cast<const double*>(part), count);
      };
      if (call.size() == 2 && from->size <= ms::pair_bytes)
        with_type(dtype, [&](auto zero) { ms::reduce_pair<decltype(zero)>(call, from, to); });
      else
        call.channel.native(call.host, native, search);
    }
    nb::gil_scoped_acquire gil;
    return nb::object(nb::bool_(found));
  });
}

}  // namespace

void register_reductions(nb::class_<MessageLoop>& loop) {
  loop.def("allreduce", run_allreduce, "host"_a, "code"_a, "sequence"_a, "traced"_a,
           "algorithm"_a, "op"_a, "dtype"_a, "blocks"_a, "block"_a, "indices"_a.none(),
           "values"_a, "Reduce a vector; return the result and the counters.");
  loop.def("allreduce_quantized", run_quantized, "host"_a, "code"_a, "sequence"_a, "traced"_a,
           "algorithm"_a, "op"_a, "dtype"_a, "blocks"_a, "block"_a, "indices"_a.none(),
           "values"_a, "own"_a, "reduced"_a, "seed"_a, "wants_seen"_a,
           "Reduce a vector with quantized values; return the result, what the ranks saw, and "
           "the counters.");
  loop.def("native", run_native, "host"_a, "agreement"_a, "sequence"_a, "traced"_a, "dtype"_a,
           "blocks"_a, "block"_a, "op"_a, "type"_a, "handle"_a, "values"_a, "out"_a,
           "Run the engine's allreduce; return whether there is a NaN, and the counters.");
}
