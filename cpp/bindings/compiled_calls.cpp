#include "bindings/compiled_calls.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <pthread.h>

namespace {

constexpr const char* phase_names[] = {"encode", "send", "wait", "decode", "add"};
static_assert(std::size(phase_names) == ms::phases);

// Returns the number of times that this process was forked from another.
int& forks() {
  static int count = 0;
  static const int registered = pthread_atfork(nullptr, nullptr, [] { ++forks(); });
  (void)registered;
  return count;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  return nb::inst_ptr<CompiledCalls>(self)->visit([&](const nb::object& object) {
    Py_VISIT(object.ptr());
    return 0;
  });
}

int clear(PyObject* self) {
  return nb::inst_ptr<CompiledCalls>(self)->visit([](nb::object& object) {
    object = nb::none();
    return 0;
  });
}

PyType_Slot collected_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                                 {Py_tp_clear, reinterpret_cast<void*>(clear)},
                                 {0, nullptr}};

nb::dict seconds_of(const CallCounters& counters) {
  nb::dict seconds;
  for (int phase = 0; phase < ms::phases; ++phase)
    seconds[phase_names[phase]] = counters.seconds[static_cast<std::size_t>(phase)];
  return seconds;
}

nb::list allreduces_of(const CallCounters& counted) {
  nb::list times;
  for (const auto& [name, algorithm] : ms::algorithms)
    if (const auto& t = counted.allreduces[static_cast<std::size_t>(algorithm)]; t.calls)
      times.append(nb::make_tuple(name, t.calls, t.predicted, t.measured));
  return times;
}

void register_state(nb::module_& m) {
  nb::class_<CallState>(m, "CallState", "The current or last call of a communicator.")
      .def(nb::init<>())
      .def_ro("sequence", &CallState::sequence, "Number of the call.")
      .def_ro("is_busy", &CallState::is_busy, "Whether a thread is in the call.")
      .def_rw("is_closed", &CallState::is_closed, "Whether the communicator is closed.")
      .def("begin", &CallState::begin, "name"_a,
           "Begin the next call, or raise if another thread is in one.")
      .def("end", &CallState::end, "End the call.")
      .def("fail", &CallState::fail, "End the call after an error.")
      .def("__str__", &CallState::describe);
  nb::class_<Identity>(m, "CallIdentity", "What messages and errors say of a call.")
      .def(nb::init<nb::object, nb::object, std::uint8_t>(), "name"_a, "op"_a, "code"_a)
      .def_prop_ro(
          "name", [](const Identity& id) { return nb::str(id.name); }, "Collective.")
      .def_prop_ro("op", [](const Identity& id) { return nb::str(id.op); }, "Operation.");
  nb::class_<CurrentCall>(m, "CurrentCall", "The call that compiled code is in.")
      .def_ro("identity", &CurrentCall::identity, "Collective and operation.")
      .def_ro("sequence", &CurrentCall::sequence, "Number of the call.")
      .def_ro("x", &CurrentCall::x, nb::sig("def x(self) -> typing.Any"),
              "Vector of this rank, or None.")
      .def_ro("quantizer", &CurrentCall::quantizer,
              nb::sig("def quantizer(self) -> typing.Any"), "Quantizer of the call, or None.");
}

template <class T>
void register_estimate(nb::module_& m) {
  m.def(
      "estimated_nnz",
      [](In<T> values, std::size_t block, Fill<T> fill) {
        return estimated_nnz(values.data(), values.size(), block, static_cast<T>(fill));
      },
      "values"_a.noconvert(), "block"_a, "fill"_a,
      "Return the number of blocks that differ from fill, by a sample.");
}

void register_choices(nb::module_& m) {
  nb::class_<Case>(m, "Case", "What the calls that share a choice have in common.")
      .def(nb::init<std::int64_t, std::int64_t, int, int, nb::object>(), "size"_a, "block"_a,
           "dtype"_a, "op"_a, "quantizer"_a.none());
  nb::class_<ChoiceCache>(m, "ChoiceCache", "Algorithms that `auto` has chosen, by case.")
      .def(nb::init<>())
      .def_ro_static("MIN_CALLS", &ChoiceCache::min_calls, "Calls that a new choice holds for.")
      .def_ro_static("SIMILAR_CALLS", &ChoiceCache::similar_calls,
                     "Calls with similar results, after which a choice holds again.")
      .def_ro_static("MAX_CASES", &ChoiceCache::max_cases, "Cached cases.")
      .def_ro_static("SAMPLE", &sample_size, "Values of a dense result that are read.")
      .def("choice", &ChoiceCache::choice, "case"_a,
           "Return the number of the algorithm that was chosen, if the choice still holds.")
      .def("store", &ChoiceCache::store, "case"_a, "algorithm"_a.none(),
           "Store a choice that the ranks have agreed on, or None if they must in each call.")
      .def("record", &ChoiceCache::record, "case"_a, "nnz"_a,
           "Record the nnz of a result, and drop the choice if it has changed by 2x.")
      .def("clear", &ChoiceCache::clear, "Discard all choices and predictions.");
  register_estimate<float>(m);
  register_estimate<double>(m);
  register_estimate<std::int32_t>(m);
  register_estimate<std::int64_t>(m);
}

}  // namespace

CompiledCalls::CompiledCalls(nb::object host, nb::object channel, nb::object state,
                             nb::object choices, nb::object stream)
    : host_(std::move(host)),
      stats_(host_.attr("stats")),
      control_(host_.attr("control")),
      channel_owner_(std::move(channel)),
      state_owner_(std::move(state)),
      choices_owner_(std::move(choices)),
      channel_(nb::cast<ms::Channel&>(channel_owner_)),
      state_(nb::cast<CallState&>(state_owner_)),
      choices_(nb::cast<ChoiceCache&>(choices_owner_)),
      moves_(dynamic_cast<ms::HostChannel*>(&channel_)),
      streams_(std::move(stream)),
      ndarray_(nb::module_::import_("numpy").attr("ndarray")),
      auto_(interned("auto")),
      ops_{interned("sum"), interned("mean")},
      agreement_(interned("agree")),
      trace_(interned("trace")),
      sent_(interned("sent")),
      failure_(interned("failure")),
      current_{{nb::none(), nb::none(), 0}, 0, nb::none(), nb::none()},
      forks_(forks()) {
  for (const auto& [name, algorithm] : ms::algorithms)
    names_[static_cast<std::size_t>(algorithm)] = interned(name);
}

bool CompiledCalls::is_traced() const {
  return !get(stats_, trace_).is_none() || !get(stats_, sent_).is_none();
}

bool CompiledCalls::may_start() const {
  return !state_.is_busy && !state_.is_closed && forks_ == forks() && !control_.is_none() &&
         get(control_, failure_).is_none() && !is_traced();
}

void CompiledCalls::report() {
  try {
    throw;
  } catch (nb::python_error& error) {
    host_.attr("fail")(error.value());
  } catch (const std::exception& error) {
    host_.attr("fail")(nb::handle(PyExc_ValueError)(error.what()));
  }
}

void CompiledCalls::count(const ms::Counters& c) {
  counted_.is_empty = false;
  counted_.add(c);
  if (!c.traced) return;
  nb::list sent, events;
  for (const auto& [peer, nbytes] : c.sent) sent.append(nb::make_tuple(peer, nbytes));
  for (const ms::Event& event : c.events) events.append(nb::cast(event));
  host_.attr("trace")(sent, events);
}

void CompiledCalls::count_allreduce(const Identity& id, const Shape& shape, std::size_t nnz,
                                    double seconds) {
  const std::size_t entry_bytes = shape.entry_bytes();
  const double predicted =
      choices_.predicted(id.algorithm(), shape.blocks, entry_bytes, nnz, [&] {
        return nb::cast<double>(host_.attr("predict")(id.name, shape.blocks, entry_bytes, nnz));
      });
  CallCounters::Allreduces& times =
      counted_.allreduces[static_cast<std::size_t>(id.algorithm())];
  ++times.calls;
  times.predicted += predicted;
  times.measured += seconds;
}

nb::object CompiledCalls::drain() {
  if (counted_.is_empty) return nb::none();
  return nb::cast(std::exchange(counted_, {}));
}

void register_compiled_calls(nb::module_& m) {
  register_state(m);
  register_choices(m);
  auto algorithms = nb::enum_<ms::Algorithm>(m, "Algorithm", "The compiled allreduces.");
  for (const auto& [name, algorithm] : ms::algorithms) algorithms.value(name, algorithm);
  nb::class_<ms::Event>(m, "CallEvent", "An event of a trace; -1: a field without a value.")
      .def_prop_ro(
          "phase", [](const ms::Event& e) { return phase_names[e.phase]; }, "Phase.")
      .def_ro("start", &ms::Event::start, "Seconds on the clock of time.perf_counter.")
      .def_ro("end", &ms::Event::end, "Seconds on the clock of time.perf_counter.")
      .def_ro("round", &ms::Event::round, "Round of the message.")
      .def_ro("peer", &ms::Event::peer, "The other rank.")
      .def_ro("nbytes", &ms::Event::nbytes, "Bytes of the message.")
      .def_ro("nnz", &ms::Event::nnz, "Entries that are encoded, or added.");
  nb::class_<CallCounters>(m, "CallCounters", "What compiled calls have counted.")
      .def_ro("messages", &CallCounters::messages, "Messages sent.")
      .def_ro("bytes", &CallCounters::bytes, "Bytes sent.")
      .def_ro("received_messages", &CallCounters::received_messages, "Messages received.")
      .def_ro("received_bytes", &CallCounters::received_bytes, "Bytes received.")
      .def_prop_ro("seconds", seconds_of, nb::sig("def seconds(self) -> dict[str, float]"),
                   "Seconds per phase.")
      .def_prop_ro("allreduces", allreduces_of,
                   nb::sig("def allreduces(self) -> list[tuple[str, int, float, float]]"),
                   "Names of algorithms, with their calls and predicted and measured seconds.");
  nb::class_<CompiledCalls> calls(m, "CompiledCalls", nb::type_slots(collected_slots),
                                  "The compiled collectives of one communicator.");
  calls
      .def(nb::init<nb::object, nb::object, nb::object, nb::object, nb::object>(), "host"_a,
           "channel"_a, "state"_a, "choices"_a, "stream"_a)
      .def("poll", &CompiledCalls::poll,
           "Make progress in the current wait; return whether it is over.")
      .def("drain", &CompiledCalls::drain, nb::sig("def drain(self) -> CallCounters | None"),
           "Return what was counted since the last time, or None.")
      .def_prop_ro("current", &CompiledCalls::current, nb::rv_policy::reference_internal,
                   "The call in progress, or the last one.");
  register_allreduces(m, calls);
  register_gathers(calls);
}
