#include <algorithm>
#include <tuple>

#include "linear/bindings/arguments.h"
#include "linear/models/steps.h"

namespace linear = sparcml::linear;

// Steps on one batch of rows after the other, whose arguments are checked once.
template <class T>
class GradientSteps {
 public:
  GradientSteps(In<std::int64_t> indptr, In<std::uint32_t> indices, In<T> values,
                In<double> labels, In<double> sample_weights, In<std::int64_t> order,
                In<std::int64_t> starts, In<double> rates, In<double> shares, int loss,
                double intercept, Out<T> weights, Out<T> velocity, Out<std::uint32_t> last,
                Out<double> table, In<double> powers, Out<double> numbers, double l1, double l2,
                double losses)
      : kept_{indptr,   indices, values, labels, sample_weights, weights,
              velocity, last,    table,  powers, numbers},
        rows_(as_rows<T>(indptr, indices, values, labels, sample_weights)),
        model_(
            as_model<T>(weights, velocity, last, table, powers, numbers, l1, l2, rates.size())),
        order_(order),
        starts_(starts),
        rates_(rates),
        shares_(shares),
        loss_(as_loss(loss)),
        intercept_(intercept),
        losses_(losses) {
    require_rows(order, labels.size());
    require(starts.size() == rates.size() + 1,
            "SGD: starts must have one more value than rates");
    for (std::size_t i = 0; i < rates.size(); ++i)
      require(starts.data()[i] >= 0 && starts.data()[i] <= starts.data()[i + 1] &&
                  starts.data()[i + 1] <= static_cast<std::int64_t>(order.size()),
              "SGD: starts must ascend within order");
    require(shares.size() == 0 || shares.size() == rates.size(),
            "SGD: shares must be empty or have one value per rate");
  }

  std::size_t size() const { return model_.features + (intercept_ != 0.0); }
  double losses() const { return losses_; }

  std::size_t capacity() {
    if (!capacity_)
      for (std::size_t i = 0; i < rates_.size(); ++i)
        capacity_ = std::max(capacity_, entries(rows_, chosen(i), count(i)));
    return std::min(capacity_, model_.features) + 1;
  }

  std::size_t gradient(Out<std::uint32_t> indices, Out<T> values) {
    require(next_ < rates_.size(), "SGD: there are no more steps");
    require(size() <= UINT32_MAX, "SGD: gradients must have less than 2^32 values");
    require(indices.size() >= capacity() && values.size() >= capacity(),
            "SGD: indices and values must hold any gradient");
    nb::gil_scoped_release nogil;
    const std::size_t rows = count(next_);
    const double share =
        shares_.size() ? shares_.data()[next_] : 1.0 / std::max<std::size_t>(rows, 1);
    const auto total = linear::gradient<T>(rows_, chosen(next_), rows, loss_, share, model_,
                                           indices.data(), values.data());
    losses_ += total.loss;
    has_gradient_ = true;
    ++next_;
    if (intercept_ == 0.0) return total.nnz;
    indices.data()[total.nnz] = static_cast<std::uint32_t>(model_.features);
    values.data()[total.nnz] = static_cast<T>(total.slope);
    return total.nnz + 1;
  }

  void apply(nb::handle indices, In<T> values) {
    require(has_gradient_, "SGD: there is no gradient to apply");
    const std::uint32_t* at = nullptr;
    if (indices.is_none()) {
      require(values.size() == size(), "SGD: a dense sum must have all values");
    } else {
      const auto given = nb::cast<In<std::uint32_t>>(indices);
      require(given.size() == values.size(), "SGD: values must have one per index");
      if (values.size())
        require_ascending(given, "SGD: indices must ascend within the size",
                          static_cast<std::uint32_t>(size()));
      at = given.data();
    }
    has_gradient_ = false;
    nb::gil_scoped_release nogil;
    linear::apply_gradient<T>(model_, rates_.data()[next_ - 1], intercept_, at, values.data(),
                              values.size());
  }

  double run() {
    require(shares_.size() == 0, "SGD: shares are those of several ranks");
    nb::gil_scoped_release nogil;
    losses_ = linear::sgd_steps<T>(rows_, order_.data(), starts_.data() + next_,
                                   rates_.data() + next_, rates_.size() - next_, loss_,
                                   intercept_, model_, losses_);
    next_ = rates_.size();
    return losses_;
  }

 private:
  const std::int64_t* chosen(std::size_t step) const {
    return order_.data() + starts_.data()[step];
  }
  std::size_t count(std::size_t step) const {
    return static_cast<std::size_t>(starts_.data()[step + 1] - starts_.data()[step]);
  }

  const std::tuple<In<std::int64_t>, In<std::uint32_t>, In<T>, In<double>, In<double>, Out<T>,
                   Out<T>, Out<std::uint32_t>, Out<double>, In<double>, Out<double>>
      kept_;  // the arrays of the rows and of the model
  const linear::Rows<T> rows_;
  const linear::Model<T> model_;
  const In<std::int64_t> order_, starts_;
  const In<double> rates_, shares_;
  const linear::Loss loss_;
  const double intercept_;
  double losses_;
  std::size_t next_ = 0, capacity_ = 0;
  bool has_gradient_ = false;  // which has not been applied
};

template <class T>
static void bind(nb::module_& m, const char* name) {
  using Steps = GradientSteps<T>;
  nb::class_<Steps>(m, name, "Steps of SGD on one rank.")
      .def(nb::init<In<std::int64_t>, In<std::uint32_t>, In<T>, In<double>, In<double>,
                    In<std::int64_t>, In<std::int64_t>, In<double>, In<double>, int, double,
                    Out<T>, Out<T>, Out<std::uint32_t>, Out<double>, In<double>, Out<double>,
                    double, double, double>(),
           ROWS_ARGS, "order"_a.noconvert(), "starts"_a.noconvert(), "rates"_a.noconvert(),
           "shares"_a.noconvert(), "loss"_a, "intercept"_a, MODEL_ARGS, "l1"_a, "l2"_a,
           "losses"_a)
      .def_prop_ro("size", &Steps::size, "Size of the gradients.")
      .def_prop_ro("capacity", &Steps::capacity, "Maximum number of entries of a gradient.")
      .def_prop_ro("losses", &Steps::losses, "Sum of the losses of the rows so far.")
      .def("gradient", &Steps::gradient, "indices"_a.noconvert(), "values"_a.noconvert(),
           "Write the gradient of the next batch. Return its number of entries.")
      .def("apply", &Steps::apply, "indices"_a.none(), "values"_a.noconvert(),
           "Make the step along the sum of the last gradient over all ranks.")
      .def("run", &Steps::run, "Make all steps on this rank alone. Return the losses.");
  m.def(
      "flush_weights",
      [](Out<T> weights, Out<T> velocity, Out<std::uint32_t> last, Out<double> table,
         In<double> powers, Out<double> numbers) {
        const auto model = as_model<T>(weights, velocity, last, table, powers, numbers);
        nb::gil_scoped_release nogil;
        linear::flush<T>(model);
      },
      MODEL_ARGS, "Apply everything pending to all weights.");
  m.def(
      "row_margins",
      [](In<std::int64_t> indptr, In<std::uint32_t> indices, In<T> values, In<double> labels,
         In<double> sample_weights, In<T> weights, Out<double> out) {
        const auto rows = as_rows<T>(indptr, indices, values, labels, sample_weights);
        require(out.size() == labels.size(), "row_margins: out must have one value per row");
        nb::gil_scoped_release nogil;
        linear::margins<T>(rows, 0, labels.size(), weights.data(), out.data());
      },
      ROWS_ARGS, "weights"_a.noconvert(), "out"_a.noconvert(), "Compute w.x of each row.");
}

void register_sgd(nb::module_& m) {
  bind<float>(m, "GradientSteps32");
  bind<double>(m, "GradientSteps64");
  m.def(
      "first_invalid_row",
      [](In<std::int64_t> indptr, In<std::uint32_t> indices, std::size_t features) {
        require(indptr.size() > 0, "rows: indptr must not be empty");
        const std::size_t count = indptr.size() - 1;
        bool fine = indptr.data()[0] >= 0;
        for (std::size_t i = 0; i < count; ++i)
          fine &= indptr.data()[i] <= indptr.data()[i + 1];
        require(fine && indptr.data()[count] <= static_cast<std::int64_t>(indices.size()),
                "rows: indptr must ascend within indices");
        nb::gil_scoped_release nogil;
        return linear::first_invalid_row(indptr.data(), indices.data(), count, features);
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "features"_a,
      "Return the first row whose columns do not ascend or reach features, else their number.");
}
