#include <nanobind/stl/pair.h>

#include <tuple>

#include "bindings/linear.h"
#include "bindings/message_memory.h"
#include "kernels/linear/steps.h"
#include "messages/steps.h"

namespace {

// Steps on one batch of rows after the other. A vector is the gradient of this rank's rows,
// whose last entry is the intercept's if there is one. The definition is `SGDRun._step` in
// linear/solvers/sgd_run.py.
template <class T>
class SgdSteps final : public ms::Steps<T> {
 public:
  SgdSteps(In<std::int64_t> indptr, In<std::uint32_t> indices, In<T> values, In<double> labels,
           In<double> sample_weights, In<std::int64_t> order, In<std::int64_t> starts,
           In<double> rates, In<double> shares, int loss, double intercept, Out<T> weights,
           Out<T> velocity, Out<std::uint32_t> last, Out<double> table, In<double> powers,
           Out<double> numbers, double l1, double l2, double losses)
      : arrays_{indptr, indices, values,   labels, sample_weights, order,  starts, rates,
                shares, weights, velocity, last,   table,          powers, numbers},
        rows_(as_rows<T>(indptr, indices, values, labels, sample_weights)),
        model_(
            as_model<T>(weights, velocity, last, table, powers, numbers, l1, l2, rates.size())),
        loss_(as_loss(loss)),
        order_(order.data()),
        starts_(starts.data()),
        rates_(rates.data()),
        shares_(shares.data()),
        steps_(rates.size()),
        intercept_(intercept),
        losses_(losses) {
    require_rows(order, labels.size());
    require_batches(order, starts, steps_);
    require(shares.size() == steps_, "SGDSteps: shares must have one value per rate");
    require(model_.features < UINT32_MAX, "SGDSteps: features must be below 2^32 - 1");
  }

  std::size_t size() const { return model_.features + (intercept_ != 0.0); }
  std::size_t made() const { return at_; }
  double losses() const { return losses_; }
  double seconds() const { return seconds_; }

  const ms::Vector<T>* vector() override {
    if (at_ == steps_) return nullptr;
    if (!is_computed_) compute();
    return &x_;
  }

  void apply(const ms::Vector<T>& sum) override {
    const double start = ms::now();
    sparcml::linear::apply_gradient<T>(model_, rates_[at_], intercept_,
                                       sum.dense ? nullptr : sum.indices, sum.values, sum.nnz);
    ++at_;
    is_computed_ = false;
    seconds_ += ms::now() - start;
  }

 private:
  void compute() {
    const double start = ms::now();
    const std::int64_t* chosen = order_ + starts_[at_];
    const auto count = static_cast<std::size_t>(starts_[at_ + 1] - starts_[at_]);
    const std::size_t room = std::min(entries(rows_, chosen, count), model_.features) + 1;
    x_ = {};
    x_.blocks = size();
    x_.index_memory = std::make_shared<ms::BlockMemory>(4 * room);
    x_.value_memory = std::make_shared<ms::BlockMemory>(sizeof(T) * room);
    auto* indices = reinterpret_cast<std::uint32_t*>(x_.index_memory->data);
    auto* values = reinterpret_cast<T*>(x_.value_memory->data);
    const auto total = sparcml::linear::gradient<T>(rows_, chosen, count, loss_, shares_[at_],
                                                    model_, indices, values);
    x_.nnz = total.nnz;
    if (intercept_ != 0.0) {
      indices[x_.nnz] = static_cast<std::uint32_t>(model_.features);
      values[x_.nnz++] = static_cast<T>(total.slope);
    }
    x_.indices = indices, x_.values = values;
    losses_ += total.loss;
    is_computed_ = true;
    seconds_ += ms::now() - start;
  }

  std::tuple<In<std::int64_t>, In<std::uint32_t>, In<T>, In<double>, In<double>,
             In<std::int64_t>, In<std::int64_t>, In<double>, In<double>, Out<T>, Out<T>,
             Out<std::uint32_t>, Out<double>, In<double>, Out<double>>
      arrays_;
  const sparcml::linear::Rows<T> rows_;
  const sparcml::linear::Model<T> model_;
  const sparcml::linear::Loss loss_;
  const std::int64_t *order_, *starts_;
  const double *rates_, *shares_;
  const std::size_t steps_;
  const double intercept_;
  double losses_, seconds_ = 0;
  std::size_t at_ = 0;
  bool is_computed_ = false;
  ms::Vector<T> x_;
};

template <class T>
void bind(nb::module_& m, const char* base, const char* name) {
  using S = SgdSteps<T>;
  nb::class_<ms::Steps<T>>(m, base, "Steps between allreduces.");
  nb::class_<S, ms::Steps<T>>(m, name, "Steps of SGD on one rank.")
      .def(nb::init<In<std::int64_t>, In<std::uint32_t>, In<T>, In<double>, In<double>,
                    In<std::int64_t>, In<std::int64_t>, In<double>, In<double>, int, double,
                    Out<T>, Out<T>, Out<std::uint32_t>, Out<double>, In<double>, Out<double>,
                    double, double, double>(),
           ROWS_ARGS, "order"_a.noconvert(), "starts"_a.noconvert(), "rates"_a.noconvert(),
           "shares"_a.noconvert(), "loss"_a, "intercept"_a, MODEL_ARGS, "l1"_a, "l2"_a,
           "losses"_a)
      .def_prop_ro("size", &S::size, "Size of the vectors.")
      .def_prop_ro("made", &S::made, "Steps that were made.")
      .def_prop_ro("losses", &S::losses, "Sum of the losses of the rows so far.")
      .def_prop_ro("seconds", &S::seconds, "Seconds of computing so far.")
      .def(
          "vector",
          [](S& steps) -> nb::object {
            const ms::Vector<T>* x = nullptr;
            {
              nb::gil_scoped_release nogil;
              x = steps.vector();
            }
            if (!x) return nb::none();
            return nb::make_tuple(x->nnz, array_of(x->index_memory, x->indices, 4 * x->nnz),
                                  array_of(x->value_memory, x->values, sizeof(T) * x->nnz));
          },
          nb::sig("def vector(self) -> tuple[int, Any, Any] | None"),
          "Return nnz, indices and values of the current vector, or None after the last.")
      .def(
          "apply",
          [](S& steps, nb::handle indices, In<T> values) {
            ms::Vector<T> sum;
            sum.dense = indices.is_none();
            sum.nnz = values.size();
            sum.values = values.data();
            if (sum.dense) {
              require(sum.nnz == steps.size(), "SGDSteps: a dense sum must have all values");
            } else {
              const auto given = nb::cast<In<std::uint32_t>>(indices);
              require(given.size() == sum.nnz, "SGDSteps: values must have one per index");
              if (sum.nnz)
                require_ascending(given, "SGDSteps: indices must ascend within the size",
                                  static_cast<std::uint32_t>(steps.size()));
              sum.indices = given.data();
            }
            require(steps.vector() != nullptr, "SGDSteps: there are no more steps");
            nb::gil_scoped_release nogil;
            steps.apply(sum);
          },
          "indices"_a.none(), "values"_a.noconvert(),
          "Apply the sum of the current vector over all ranks.");
}

}  // namespace

void register_sgd_steps(nb::module_& m) {
  bind<float>(m, "StepsFloat32", "SGDStepsFloat32");
  bind<double>(m, "StepsFloat64", "SGDStepsFloat64");
}
