#include <cmath>
#include <limits>

#include "bindings/compiled_calls.h"
#include "kernels/dense/dense.h"
#include "messages/reduce_pair.h"

namespace {

// Returns the engine's own sum of a dense vector, or this package's for two ranks.
template <class T>
ms::Vector<T> reduce_native(ms::Call& call, const ms::Vector<T>& x) {
  ms::Vector<T> y = x;
  const ms::Shared& from = x.value_memory;
  y.value_memory = call.host.allocate(from->size);
  auto* const out = reinterpret_cast<T*>(y.value_memory->data);
  y.values = out;
  ms::Timer timer(call, ms::wait_phase);
  if (call.size() == 2 && from->size <= ms::pair_bytes) {
    ms::reduce_pair<T>(call, from, y.value_memory);
    return y;
  }
  const std::size_t count = x.nnz * call.block;
  bool has_nan = false;
  const ms::NativeCall native{from->data, y.value_memory->data, count,
                              sizeof(T),  call.dtype,           call.op};
  call.channel.native(call.host, native, [&](std::size_t start, std::size_t size) {
    if constexpr (std::is_floating_point_v<T>)
      has_nan |= sparcml::has_nan<T>(out + start, size);
  });
  if constexpr (std::is_floating_point_v<T>)
    if (has_nan)  // which becomes the canonical one
      std::replace_if(
          out, out + count, [](T value) { return std::isnan(value); },
          std::numeric_limits<T>::quiet_NaN());
  return y;
}

template <class T>
ms::Vector<T> run_algorithm(ms::Call& call, ms::Algorithm algorithm, ms::Vector<T> x,
                            ms::Seen<T>* seen) {
  switch (algorithm) {
    case ms::Algorithm::ssar_recursive_double:
      return ms::ssar_recursive_double(call, std::move(x));
    case ms::Algorithm::ssar_split_allgather:
      return ms::ssar_split_allgather(call, std::move(x), seen);
    case ms::Algorithm::dsar_split_allgather:
      return ms::dsar_split_allgather(call, std::move(x), seen);
    case ms::Algorithm::ssar_ring:
      return ms::ssar_ring(call, std::move(x));
    case ms::Algorithm::native:
      return reduce_native(call, x);
  }
  throw std::invalid_argument("reduce: the algorithm is not compiled");
}

// Divides the sum of all ranks; messages in flight may share its memory.
template <class T>
ms::Vector<T> divide(ms::Call& call, const ms::Vector<T>& sum) {
  ms::Vector<T> mean = sum;
  const std::size_t count = sum.nnz * call.block;
  if (!sum.dense && !sum.index_memory) mean.index_memory = sum.value_memory;
  mean.value_memory = call.host.allocate(count * sizeof(T));
  mean.values = reinterpret_cast<const T*>(mean.value_memory->data);
  const T ranks = static_cast<T>(call.size());
  std::transform(sum.values, sum.values + count, mean.writable(),
                 [=](T value) { return value / ranks; });
  return mean;
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

}  // namespace

template <class T>
ms::Vector<T> CompiledCalls::run(PythonHost& host, const Identity& id, const Operand& x,
                                 const ms::Quantization* quantization, ms::Seen<T>* seen) {
  auto vector = x.vector<T>("allreduce");
  const auto algorithm = static_cast<ms::Algorithm>(id.algorithm());
  ms::Vector<T> y = execute(host, id, x.shape, quantization, [&](ms::Call& call) {
    ms::Vector<T> sum = run_algorithm(call, algorithm, std::move(vector), seen);
    call.finish();
    if constexpr (std::is_floating_point_v<T>)
      if (id.is_mean()) return divide(call, sum);
    return sum;
  });
  if (algorithm == ms::Algorithm::native)
    host_.attr("count_native")(x.shape.blocks * x.shape.entry_bytes());
  return y;
}

template <class T>
ms::Vector<T> CompiledCalls::run_timed(PythonHost& host, const Identity& id, const Operand& x) {
  const std::size_t nnz = x.nnz();
  const double start = ms::now();
  ms::Vector<T> y = run<T>(host, id, x, nullptr, nullptr);
  count_allreduce(id, x.shape, nnz, ms::now() - start);
  return y;
}

nb::object CompiledCalls::allreduce(nb::handle x, nb::handle op, nb::handle algorithm) {
  const int code = op.is(ops_[0]) ? 0 : op.is(ops_[1]) ? Identity::mean : -1;
  if (code < 0 || !may_start()) return nb::none();
  if (streams_.holds(x)) return reduce_stream(x, code, algorithm);
  const bool is_native = algorithm.is(names_[static_cast<int>(ms::Algorithm::native)]);
  return is_native && !moves_ ? reduce_array(x, code) : nb::none();
}

std::optional<ms::Algorithm> CompiledCalls::choose(nb::handle algorithm,
                                                   const Case& key) const {
  const bool is_auto = algorithm.is(auto_);
  const std::optional<int> chosen = is_auto ? choices_.choice(key) : std::nullopt;
  for (const auto& [_, known] : ms::algorithms) {
    const int number = static_cast<int>(known);
    if (is_auto ? chosen == number : algorithm.is(names_[static_cast<std::size_t>(number)]))
      return known;
  }
  return {};
}

nb::object CompiledCalls::reduce_stream(nb::handle x, int op, nb::handle algorithm) {
  const Operand operand = streams_.read(x);
  const Shape& shape = operand.shape;
  if (!shape.dtype || (op == Identity::mean && !shape.is_float()) ||
      nb::cast<double>(operand.fill) != 0 ||
      (!operand.is_dense() &&
       ms::dense_is_smaller(operand.nnz(), shape.blocks, shape.entry_bytes())))
    return nb::none();
  const Case key{std::int64_t{shape.blocks} * shape.block, shape.block, shape.dtype, op,
                 nb::none()};
  const std::optional<ms::Algorithm> chosen = choose(algorithm, key);
  if (!chosen || chosen == ms::Algorithm::native) return nb::none();  // ranks agree before it
  const Identity id = identity(*chosen, op);
  return with_type(shape.dtype, [&](auto zero) {
    using T = decltype(zero);
    return in_call(id, x, nb::none(), [&](PythonHost& host) {
      const auto y = run_timed<T>(host, id, operand);
      if (algorithm.is(auto_))
        choices_.record(
            key,
            y.dense ? estimated_nnz(y.values, y.nnz * shape.block, shape.block, T(0)) : y.nnz);
      return streams_.make(shape, y, operand.fill, false);
    });
  });
}

nb::object CompiledCalls::reduce_array(nb::handle x, int op) {
  if (!x.type().is(ndarray_) || !nb::cast<bool>(x.attr("flags").attr("c_contiguous")))
    return nb::none();
  const auto size = nb::cast<std::size_t>(x.attr("size"));
  const Shape shape{streams_.dtype_of(x), static_cast<std::uint32_t>(size), 1};
  if (!shape.dtype || !size || size > UINT32_MAX || (op == Identity::mean && !shape.is_float()))
    return nb::none();
  // The library does not detect that ranks differ.
  const Identity agreement{agreement_, ops_[op == Identity::mean],
                           static_cast<std::uint8_t>(op)};
  const nb::object agreed = agree(agreement, shape, x, nb::none(), 0, size);
  if (!nb::isinstance<nb::tuple>(agreed)) {
    PyErr_SetObject(agreed.type().ptr(), agreed.ptr());
    throw nb::python_error();
  }
  const Identity id = identity(ms::Algorithm::native, op);
  const nb::object result = with_type(shape.dtype, [&](auto zero) {
    return in_call(id, x, nb::none(), [&](PythonHost& host) {
      const Operand operand{shape, nb::none(), nb::borrow(x), nb::none()};
      return streams_.values(shape, run_timed<decltype(zero)>(host, id, operand));
    });
  });
  result.attr("flags").attr("writeable") = false;
  return nb::cast<int>(x.attr("ndim")) == 1 ? result : result.attr("reshape")(x.attr("shape"));
}

nb::object CompiledCalls::reduce(const Identity& id, nb::handle x, nb::handle quantizer,
                                 const ms::Quantization* quantization, bool wants_seen) {
  const Operand operand = streams_.read_known(x);
  const Shape& shape = operand.shape;
  require(!quantization || shape.is_float(), "allreduce: quantized values must be floats");
  return with_type(shape.dtype, [&](auto zero) {
    using T = decltype(zero);
    return in_call(id, x, quantizer, [&](PythonHost& host) {
      ms::Seen<T> seen;
      const auto y = run<T>(host, id, operand, quantization, wants_seen ? &seen : nullptr);
      nb::list parts;
      const auto append = [&](const ms::Vector<T>& part) {
        parts.append(streams_.make(shape, part, operand.fill, false));
      };
      for (const auto& part : seen.parts) append(part);
      if (wants_seen) append(seen.reduced), append(seen.decoded);
      return nb::object(
          nb::make_tuple(streams_.make(shape, y, operand.fill, true), std::move(parts)));
    });
  });
}

void register_allreduces(nb::module_& m, nb::class_<CompiledCalls>& calls) {
  nb::class_<ms::Quantization>(m, "Quantization", "How a call quantizes values.")
      .def(
          "__init__",
          [](ms::Quantization* self, nb::bytes own, nb::bytes reduced, std::uint64_t seed) {
            new (self) ms::Quantization{format_of(own), format_of(reduced), seed};
          },
          "own"_a, "reduced"_a, "seed"_a);
  calls
      .def("allreduce", &CompiledCalls::allreduce, "x"_a.none(), "op"_a.none(),
           "algorithm"_a.none(),
           nb::sig("def allreduce(self, x: typing.Any, op: typing.Any, algorithm: typing.Any) "
                   "-> typing.Any"),
           "Return the sum or mean, or None if Python must check, choose or trace first.")
      .def("reduce", &CompiledCalls::reduce, "identity"_a, "x"_a, "quantizer"_a.none(),
           "quantization"_a.none(), "wants_seen"_a,
           nb::sig("def reduce(self, identity: CallIdentity, x: object, quantizer: object, "
                   "quantization: Quantization | None, wants_seen: bool) -> "
                   "tuple[typing.Any, list[typing.Any]]"),
           "Return the result for a stream, a dense one for the engine's own allreduce. With "
           "quantized values also what the ranks saw, if that is wanted: this rank's part of "
           "each range, its own range, and that range as decoded.");
}
