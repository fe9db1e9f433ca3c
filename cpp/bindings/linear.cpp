#include "bindings/linear.h"

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "kernels/linear/steps.h"

using sparcml::linear::Model;

template <class T>
static Model<T> as_model(Out<T> weights, Out<T> velocity, Out<std::uint32_t> last,
                         Out<double> table, In<double> powers, Out<double> numbers,
                         double l1 = 0, double l2 = 0, std::size_t steps = 0) {
  const bool adaptive = numbers.size() == 8;
  require(numbers.size() == 4 || adaptive,
          "model: numbers must have four values, or eight if adaptive");
  const double damping = adaptive ? numbers.data()[5] : 0.0;
  if (adaptive) l1 = numbers.data()[6], l2 = numbers.data()[7];  // what is due depends on them
  require(!adaptive || weights.size() % 2 == 0,
          "model: adaptive weights must each be followed by a sum of squares");
  const std::size_t n = weights.size() / (adaptive ? 2 : 1);
  require(velocity.size() == 0 || velocity.size() == n,
          "model: velocity must be empty or have one value per weight");
  require(last.size() == 0 || last.size() == n,
          "model: last must be empty or have one value per weight");
  require(velocity.size() == 0 || (last.size() == n && powers.size() > 1),
          "model: momentum needs last and powers");
  const double clock = numbers.data()[1];
  require(last.size() == 0 || (clock >= 0 && clock + steps + 1 <= table.size()),
          "model: table must have one more value than steps");
  require(n == 0 || last.size() == n || (l1 == 0 && !(adaptive && l2 != 0)),
          "model: l1 (if adaptive also l2) needs last and a table");
  require(!adaptive || velocity.size() == 0, "model: adaptive steps have no momentum");
  return {weights.data(),
          velocity.size() ? velocity.data() : nullptr,
          last.size() ? last.data() : nullptr,
          table.data(),
          powers.data(),
          powers.size(),
          numbers.data(),
          n,
          adaptive,
          damping,
          l1,
          l2};
}

#define MODEL_ARGS                                                         \
  "weights"_a.noconvert(), "velocity"_a.noconvert(), "last"_a.noconvert(), \
      "table"_a.noconvert(), "powers"_a.noconvert(), "numbers"_a.noconvert()
#define ROWS_ARGS                                                          \
  "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(), \
      "labels"_a.noconvert(), "sample_weights"_a.noconvert()

template <class T>
static void bind(nb::module_& m) {
  m.def(
      "linear_gradient",
      [](In<std::int64_t> indptr, In<std::uint32_t> indices, In<T> values, In<double> labels,
         In<double> sample_weights, In<std::int64_t> chosen, int loss, double share,
         Out<T> weights, Out<T> velocity, Out<std::uint32_t> last, Out<double> table,
         In<double> powers, Out<double> numbers, Out<std::uint32_t> oi, Out<T> ov) {
        const auto rows = as_rows<T>(indptr, indices, values, labels, sample_weights);
        const auto model = as_model<T>(weights, velocity, last, table, powers, numbers);
        require_rows(chosen, labels.size());
        std::size_t room = 0;
        for (std::size_t i = 0; i < chosen.size(); ++i) room += rows.size(chosen.data()[i]);
        if (room > model.features) room = model.features;
        require(oi.size() >= room && ov.size() >= room,
                "linear_gradient: oi and ov must hold the entries of the rows");
        const auto kind = as_loss(loss);
        nb::gil_scoped_release nogil;
        const auto total = sparcml::linear::gradient<T>(
            rows, chosen.data(), chosen.size(), kind, share, model, oi.data(), ov.data());
        return std::make_tuple(total.nnz, total.slope, total.loss);
      },
      ROWS_ARGS, "chosen"_a.noconvert(), "loss"_a, "share"_a, MODEL_ARGS, "oi"_a.noconvert(),
      "ov"_a.noconvert(), "The gradient of some rows: entries, the intercept's, and the loss");
  m.def(
      "linear_apply_gradient",
      [](Out<T> weights, Out<T> velocity, Out<std::uint32_t> last, Out<double> table,
         In<double> powers, Out<double> numbers, double l1, double l2, double rate,
         double intercept, In<std::uint32_t> indices, In<T> gradient) {
        const auto model =
            as_model<T>(weights, velocity, last, table, powers, numbers, l1, l2, 1);
        const bool dense = indices.size() == 0 && gradient.size() != 0;
        require(dense
                    ? gradient.size() == model.features || gradient.size() == model.features + 1
                    : gradient.size() == indices.size(),
                "linear_apply_gradient: values must have one value per index, or be dense");
        if (!dense && indices.size())
          require_ascending(
              indices, "linear_apply_gradient: indices must ascend, up to the intercept",
              static_cast<std::uint32_t>(model.features < UINT32_MAX ? model.features + 1
                                                                     : UINT32_MAX));
        nb::gil_scoped_release nogil;
        sparcml::linear::apply_gradient<T>(model, rate, intercept,
                                           dense ? nullptr : indices.data(), gradient.data(),
                                           gradient.size());
      },
      MODEL_ARGS, "l1"_a, "l2"_a, "rate"_a, "intercept"_a, "indices"_a.noconvert(),
      "gradient"_a.noconvert(), "One step along a gradient");
  m.def(
      "linear_sgd_steps",
      [](In<std::int64_t> indptr, In<std::uint32_t> indices, In<T> values, In<double> labels,
         In<double> sample_weights, In<std::int64_t> order, In<std::int64_t> starts,
         In<double> rates, int loss, double intercept, Out<T> weights, Out<T> velocity,
         Out<std::uint32_t> last, Out<double> table, In<double> powers, Out<double> numbers,
         double l1, double l2, double losses) {
        const auto rows = as_rows<T>(indptr, indices, values, labels, sample_weights);
        const std::size_t steps = rates.size();
        const auto model =
            as_model<T>(weights, velocity, last, table, powers, numbers, l1, l2, steps);
        require_rows(order, labels.size());
        require(starts.size() == steps + 1,
                "linear_sgd_steps: starts must have one more value than rates");
        for (std::size_t i = 0; i < steps; ++i)
          require(starts.data()[i] >= 0 && starts.data()[i] <= starts.data()[i + 1] &&
                      starts.data()[i + 1] <= static_cast<std::int64_t>(order.size()),
                  "linear_sgd_steps: starts must ascend within order");
        const auto kind = as_loss(loss);
        nb::gil_scoped_release nogil;
        return sparcml::linear::sgd_steps<T>(rows, order.data(), starts.data(), rates.data(),
                                             steps, kind, intercept, model, losses);
      },
      ROWS_ARGS, "order"_a.noconvert(), "starts"_a.noconvert(), "rates"_a.noconvert(), "loss"_a,
      "intercept"_a, MODEL_ARGS, "l1"_a, "l2"_a, "losses"_a,
      "Make one step per batch of rows. Return losses plus those of the rows.");
  m.def(
      "linear_flush",
      [](Out<T> weights, Out<T> velocity, Out<std::uint32_t> last, Out<double> table,
         In<double> powers, Out<double> numbers) {
        const auto model = as_model<T>(weights, velocity, last, table, powers, numbers);
        nb::gil_scoped_release nogil;
        sparcml::linear::flush<T>(model);
      },
      MODEL_ARGS, "Apply everything pending to all weights.");
  m.def(
      "linear_margins",
      [](In<std::int64_t> indptr, In<std::uint32_t> indices, In<T> values, In<double> labels,
         In<double> sample_weights, In<T> weights, Out<double> out) {
        const auto rows = as_rows<T>(indptr, indices, values, labels, sample_weights);
        require(out.size() == labels.size(), "linear_margins: out must have one value per row");
        nb::gil_scoped_release nogil;
        sparcml::linear::margins<T>(rows, 0, labels.size(), weights.data(), out.data());
      },
      ROWS_ARGS, "weights"_a.noconvert(), "out"_a.noconvert(), "w.x of each row");
}

void register_linear(nb::module_& m) {
  bind<float>(m);
  bind<double>(m);
  m.def(
      "linear_first_invalid_row",
      [](In<std::int64_t> indptr, In<std::uint32_t> indices, std::size_t features) {
        require(indptr.size() > 0, "rows: indptr must not be empty");
        const std::size_t count = indptr.size() - 1;
        bool fine = indptr.data()[0] >= 0;
        for (std::size_t i = 0; i < count; ++i)
          fine &= indptr.data()[i] <= indptr.data()[i + 1];
        require(fine && indptr.data()[count] <= static_cast<std::int64_t>(indices.size()),
                "rows: indptr must ascend within indices");
        nb::gil_scoped_release nogil;
        return sparcml::linear::first_invalid_row(indptr.data(), indices.data(), count,
                                                  features);
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "features"_a,
      "Return the first row whose columns do not ascend or reach features, else their number.");
}
