#include "bindings/prepared_calls.h"

#include <nanobind/stl/string.h>
#include <pthread.h>

namespace {

constexpr std::size_t most_prepared = 256;

// Rounds to 5 significant bits, as costs/estimate.py does.
std::uint32_t rounded(std::size_t nnz) {
  std::size_t unit = 1;
  while (nnz >> 5 >= unit) unit *= 2;
  return static_cast<std::uint32_t>((nnz + unit / 2) / unit * unit);
}

// Returns the counters and the times of allreduces since the last time, see Stats.
nb::object drain(Totals& totals) {
  if (totals.is_empty) return nb::none();
  const ms::Counters& c = totals.counters;
  nb::list times;
  for (const auto& [name, t] : totals.allreduces)
    if (t.calls) times.append(nb::make_tuple(name, t.calls, t.predicted, t.measured));
  nb::object drained = nb::make_tuple(times, c.messages, c.bytes, c.received_messages,
                                      c.received_bytes, c.seconds[0], c.seconds[1],
                                      c.seconds[2], c.seconds[3], c.seconds[4], nb::none());
  totals.counters = {};
  for (auto& [name, t] : totals.allreduces) t = {};
  totals.is_empty = true;
  return drained;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  return nb::inst_ptr<PreparedCalls>(self)->visit([&](const nb::object& object) {
    Py_VISIT(object.ptr());
    return 0;
  });
}

int clear(PyObject* self) {
  auto* calls = nb::inst_ptr<PreparedCalls>(self);
  calls->clear();  // nothing is prepared any more
  return calls->visit([](nb::object& object) {
    object.reset();
    return 0;
  });
}

PyType_Slot collected_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                                 {Py_tp_clear, reinterpret_cast<void*>(clear)},
                                 {0, nullptr}};

}  // namespace

int& PreparedCalls::forks() {
  static int count = 0;
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { ++PreparedCalls::forks(); });
  (void)registered;
  return count;
}

void PreparedCalls::prepare(nb::object algorithm, nb::object dtype, std::int64_t size,
                            std::int64_t block, nb::object name, nb::object choice, int code,
                            int number, int dtype_code, std::uint32_t nnz, double predicted) {
  CallShape shape{std::move(algorithm), std::move(dtype), size, block};
  std::shared_ptr<PreparedCall> call;
  if (const auto found = calls_.find(shape); found != calls_.end()) call = found->second;
  if (!call || !call->choice.is(choice) || !call->name.is(name)) {
    if (calls_.size() >= most_prepared) calls_.clear();
    Totals::Times* times = &totals_.allreduces[nb::cast<std::string>(name)];
    call = std::make_shared<PreparedCall>(
        PreparedCall{name, std::move(choice), code, number, dtype_code, {}, times});
    calls_[std::move(shape)] = call;
  }
  if (call->predicted.size() >= most_prepared) call->predicted.clear();
  call->predicted[rounded(nnz)] = predicted;
}

// Returns whether a choice of `auto` still holds.
bool PreparedCalls::holds(const PreparedCall& call) const {
  const nb::object& choice = call.choice;
  return choice.is_none() ||
         (get(choice, names_.algorithm).is(call.name) && !integer(choice, names_.recheck) &&
          integer(choice, names_.calls) < integer(choice, names_.max_calls));
}

// Records the nnz of a result. Python decides if it has changed, and estimates that of a dense
// one.
template <class T>
void PreparedCalls::record(const PreparedCall& call, const CallShape& shape,
                           const ms::Vector<T>& x) const {
  if (call.choice.is_none()) return;
  const nb::object first = get(call.choice, names_.result_nnz);
  if (!first.is_none() && !x.dense) {
    const auto before = nb::cast<std::size_t>(first);
    if (before <= 2 * x.nnz && x.nnz <= 2 * before) {
      set(call.choice, names_.calls, nb::int_(integer(call.choice, names_.calls) + 1));
      return;
    }
  }
  call.choice.attr("record")(stream_of(shape, x));
}

bool PreparedCalls::may_start() const {
  return forks_ == forks() && get(control_, names_.failure).is_none() &&
         get(stats_, names_.trace).is_none() && get(stats_, names_.sent).is_none();
}

bool PreparedCalls::acquire() {
  if (!nb::cast<bool>(acquire_(false))) return false;
  holder_ = PyThread_get_thread_ident();
  return true;
}

void PreparedCalls::release() {
  holder_ = 0;
  release_();
}

// Returns an array of a result.
nb::object PreparedCalls::array(const ms::Shared& memory, const void* data, std::size_t count,
                                std::size_t nbytes, const nb::object& dtype) const {
  const nb::object part = array_of(memory, data, nbytes);
  return frombuffer_(part[0], dtype, count, part[1]);
}

template <class T>
nb::object PreparedCalls::stream_of(const CallShape& shape, const ms::Vector<T>& x) const {
  auto* type = reinterpret_cast<PyTypeObject*>(stream_.ptr());
  nb::object stream = nb::steal(PyType_GenericAlloc(type, 0));
  if (!stream.is_valid()) throw nb::python_error();
  const std::size_t count = x.nnz * static_cast<std::size_t>(shape.block);
  const ms::Shared& memory = x.index_memory ? x.index_memory : x.value_memory;
  set(stream, names_.indices,
      x.dense ? nb::none() : array(memory, x.indices, x.nnz, 4 * x.nnz, uint32_));
  set(stream, names_.values,
      array(x.value_memory, x.values, count, count * sizeof(T), shape.dtype));
  set(stream, names_.size, nb::int_(shape.size));
  set(stream, names_.block, nb::int_(shape.block));
  set(stream, names_.fill, zero_);
  set(stream, names_.scratch, nb::handle(Py_False));
  return stream;
}

template <class T>
ms::Vector<T> PreparedCalls::run(PreparedCall& call, const CallShape& shape,
                                 const ms::Vector<T>& x, double predicted,
                                 const std::function<nb::object()>& stream) {
  const double start = ms::now();
  const std::uint64_t sequence = state_.begin(call.name);
  const auto describe = [&] {
    return nb::make_tuple(call.name, names_.sum, sequence, stream());
  };
  PythonHost host(host_, loop_.moves(), describe);
  const Identity id{call.code, static_cast<std::uint32_t>(sequence), false};
  ms::Call message_call = loop_.call(host, id, call.dtype, static_cast<std::uint32_t>(x.blocks),
                                     static_cast<std::uint32_t>(shape.block), 0);
  ms::Vector<T> result = loop_.execute(
      host, message_call, [&](ms::Call& c) { return reduce(c, call.algorithm, x); });
  totals_.add(message_call.counters);
  ++call.times->calls;
  call.times->predicted += predicted;
  call.times->measured += ms::now() - start;
  state_.is_over = true;
  if (host.was_described()) transport_.attr("input_summary") = "";
  record(call, shape, result);
  return result;
}

// Returns the predicted seconds of a call, or nullptr if Python must make it.
const double* PreparedCalls::prediction(const PreparedCall& call, const CallShape& shape,
                                        std::size_t nnz, bool is_dense) const {
  const auto blocks = static_cast<std::size_t>(shape.size / shape.block);
  const std::size_t item = with_type(call.dtype, [](auto zero) { return sizeof zero; });
  if (!is_dense &&
      ms::dense_is_smaller(nnz, blocks, static_cast<std::size_t>(shape.block) * item))
    return nullptr;
  const auto predicted = call.predicted.find(rounded(nnz));
  if (predicted == call.predicted.end() || !holds(call) || !may_start()) return nullptr;
  return &predicted->second;
}

nb::object PreparedCalls::allreduce(nb::handle x, nb::handle op, nb::handle algorithm) {
  if (x.type().ptr() != stream_.ptr() || !op.is(names_.sum)) return nb::none();
  const nb::object values = get(x, names_.values), indices = get(x, names_.indices);
  const CallShape shape{nb::borrow(algorithm), get(values, names_.dtype),
                        integer(x, names_.size), integer(x, names_.block)};
  const auto found = calls_.find(shape);
  if (found == calls_.end() || nb::cast<double>(get(x, names_.fill)) != 0) return nb::none();
  const std::shared_ptr<PreparedCall> call = found->second;
  const auto blocks = static_cast<std::size_t>(shape.size / shape.block);
  const std::size_t nnz = indices.is_none() ? blocks : nb::len(indices);
  const double* predicted = prediction(*call, shape, nnz, indices.is_none());
  if (!predicted || !acquire()) return nb::none();
  nb::object result = with_type(call->dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto vector = vector_of<T>("allreduce", blocks, static_cast<std::size_t>(shape.block),
                                     indices, values);
    const auto stream = [&] { return nb::borrow(x); };
    return stream_of(shape, run<T>(*call, shape, vector, *predicted, stream));
  });
  release();
  return result;
}

void register_prepared_calls(nb::module_& m) {
  nb::class_<CallState>(m, "CallState", "The current or last call of a communicator.")
      .def(nb::init<>())
      .def_rw("sequence", &CallState::sequence, "Number of the call.")
      .def("begin", &CallState::begin, "name"_a, "Begin the next call; return its number.")
      .def(
          "end", [](CallState& state) { state.is_over = true; }, "End the call.")
      .def("__str__", &CallState::describe);
  nb::class_<Totals>(m, "Totals", "Sums of the counters of prepared calls.")
      .def(nb::init<>())
      .def("drain", drain, nb::sig("def drain(self) -> tuple[Any, ...] | None"),
           "Return the counters since the last time, or None if there are none.");
  nb::class_<PreparedCalls>(m, "PreparedCalls", nb::type_slots(collected_slots),
                            "Allreduces that were prepared.")
      .def(nb::init<nb::object, nb::object, nb::object, nb::object, nb::object, nb::object,
                    nb::object, nb::object, nb::object, nb::object>(),
           "host"_a, "loop"_a, "transport"_a, "stats"_a, "busy"_a, "state"_a, "totals"_a,
           "stream"_a, "frombuffer"_a, "uint32"_a)
      .def("prepare", &PreparedCalls::prepare, "algorithm"_a, "dtype"_a, "size"_a, "block"_a,
           "name"_a, "choice"_a.none(), "code"_a, "number"_a, "dtype_code"_a, "nnz"_a,
           "predicted"_a, "Prepare sums of a shape, for vectors of similar nnz.")
      .def("allreduce", &PreparedCalls::allreduce, "x"_a.none(), "op"_a.none(),
           "algorithm"_a.none(), "Return the sum, or None if it is not prepared.")
      .def("take_over", &PreparedCalls::take_over,
           "Return whether an error has left a call of this thread, and its lock.")
      .def("clear", &PreparedCalls::clear, "Forget all prepared sums.");
}
