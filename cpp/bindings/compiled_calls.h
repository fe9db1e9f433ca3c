// The compiled collectives of one communicator: each is a call that is numbered, counted, and
// reported to all ranks if it fails.
#pragma once

#include <array>
#include <optional>

#include "bindings/call_state.h"
#include "bindings/choice_cache.h"
#include "bindings/python_host.h"
#include "bindings/streams.h"
#include "messages/collectives.h"

// What calls have counted since Python has read it.
struct CallCounters : ms::Counters {
  struct Allreduces {
    std::int64_t calls = 0;
    double predicted = 0, measured = 0;
  };
  std::array<Allreduces, 32> allreduces;  // by number
  bool is_empty = true;
};

class CompiledCalls {
 public:
  // `host` is the Python object that has the functions of python_host.h, and the attributes
  // `stats` and `control`.
  CompiledCalls(nb::object host, nb::object channel, nb::object state, nb::object choices,
                nb::object stream);

  // Returns the sum or mean of a stream, or of an array by the engine's own allreduce; None if
  // Python must check, convert or choose first, or trace the call.
  nb::object allreduce(nb::handle x, nb::handle op, nb::handle algorithm);

  // Returns the result for a stream, and what the other ranks saw of it: see `Seen`.
  nb::object reduce(const Identity& id, nb::handle x, nb::handle quantizer,
                    const ms::Quantization* quantization, bool wants_seen);

  // Returns the nnz of all ranks, or what the host makes of their headers if these differ.
  nb::object agree(const Identity& id, nb::handle x, nb::handle quantizer, int round);

  // Returns the vectors and numbers of all ranks, or adds vectors to `out` and returns None.
  nb::object allgather(const Identity& id, nb::handle x, nb::handle described, nb::handle out);

  void barrier(const Identity& id);

  bool poll() { return channel_.poll(); }
  const CurrentCall& current() const { return current_; }

  // Returns what was counted since the last time, or None.
  nb::object drain();

  // For Python's collector of cycles: visits the objects that may refer to this one.
  template <class F>
  int visit(F each) {
    for (nb::object* object : {&host_, &stats_, &control_, &current_.x, &current_.quantizer})
      if (const int stop = each(*object)) return stop;
    return 0;
  }

 private:
  // A call of this communicator, from its number to the end: no error leaves the lock held.
  struct Turn {
    Turn(CompiledCalls& calls, const Identity& id, nb::handle x, nb::handle quantizer)
        : calls(calls) {
      calls.state_.begin(id.name);
      calls.current_ = {id, calls.state_.sequence, nb::borrow(x), nb::borrow(quantizer)};
    }
    ~Turn() {
      calls.current_.x = nb::none(), calls.current_.quantizer = nb::none();
      calls.state_.is_busy = false;
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    CompiledCalls& calls;
  };

  // Runs a function of the host in a call.
  template <class F>
  auto in_call(const Identity& id, nb::handle x, nb::handle quantizer, F function) {
    const Turn turn(*this, id, x, quantizer);
    try {
      PythonHost host(host_, moves_);
      auto result = function(host);
      if (host.has_described()) host_.attr("restore")();
      state_.is_over = true;
      return result;
    } catch (...) {
      report();
      throw;
    }
  }

  // Runs messages without the GIL, and counts them; after an error all messages are given up.
  template <class F>
  auto execute(PythonHost& host, const Identity& id, const Shape& shape,
               const ms::Quantization* quantization, F collective) {
    ms::Call call{channel_,
                  host,
                  id.code,
                  static_cast<std::uint32_t>(state_.sequence),
                  static_cast<std::uint8_t>(shape.dtype),
                  shape.blocks,
                  shape.block,
                  as_op(id.reduction()),
                  quantization};
    call.counters.traced = is_traced();
    auto result = [&] {
      nb::gil_scoped_release nogil;
      try {
        channel_.longest = call.longest_message();
        channel_.open(host);
        return collective(call);
      } catch (...) {
        channel_.abandon();
        throw;
      }
    }();
    count(call.counters);
    return result;
  }

  // Reports the error that is being handled to all ranks.
  void report();

  bool is_traced() const;
  bool may_start() const;
  void count(const ms::Counters& counters);
  void count_allreduce(const Identity& id, const Shape& shape, std::size_t nnz, double seconds);

  template <class T>
  ms::Vector<T> run(PythonHost& host, const Identity& id, const Operand& x,
                    const ms::Quantization* quantization, ms::Seen<T>* seen);
  template <class T>
  ms::Vector<T> run_timed(PythonHost& host, const Identity& id, const Operand& x);
  nb::object reduce_stream(nb::handle x, int op, nb::handle algorithm);
  nb::object reduce_array(nb::handle x, int op);

  // Returns the algorithm of a call if it is compiled, and Python need not choose it.
  std::optional<ms::Algorithm> choose(nb::handle algorithm, const Case& key) const;
  nb::object agree(const Identity& id, const Shape& shape, nb::handle x, nb::handle quantizer,
                   int round, std::size_t nnz);

  // Returns the call of an algorithm.
  Identity identity(ms::Algorithm algorithm, int op) const {
    const int number = static_cast<int>(algorithm);
    return {names_[static_cast<std::size_t>(number)], ops_[op == Identity::mean],
            static_cast<std::uint8_t>(number << 3 | op)};
  }

  nb::object host_, stats_, control_;
  const nb::object channel_owner_, state_owner_, choices_owner_;
  ms::Channel& channel_;
  CallState& state_;
  ChoiceCache& choices_;
  const bool moves_;  // whether the host moves messages
  const StreamClass streams_;
  std::array<nb::object, 32> names_;  // of algorithms, by number; interned
  const nb::object ndarray_, auto_, ops_[2], agreement_, trace_, sent_, failure_;
  CallCounters counted_;
  CurrentCall current_;
  const int forks_;
};

void register_allreduces(nb::module_& m, nb::class_<CompiledCalls>& calls);
void register_gathers(nb::class_<CompiledCalls>& calls);
