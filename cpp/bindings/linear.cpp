#include "bindings/linear.h"

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "kernels/linear/steps.h"

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
        require_batches(order, starts, steps);
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
