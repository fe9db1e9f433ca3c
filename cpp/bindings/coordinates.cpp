#include "kernels/linear/coordinates.h"

#include "bindings/linear.h"
#include "kernels/linear/gradient.h"

using sparcml::linear::ScdObjective;

static ScdObjective as_objective(int loss, double l1, double l2, double share, double ranks,
                                 const In<double>& labels, const In<double>& weights) {
  require(weights.size() == 0 || weights.size() == labels.size(),
          "rows: weights must be empty or have one value per row");
  require(loss != static_cast<int>(sparcml::linear::Loss::hinge),
          "linear_scd_steps: the hinge loss has no second derivative");
  return {as_loss(loss),
          l1,
          l2,
          share,
          ranks,
          labels.data(),
          weights.size() ? weights.data() : nullptr};
}

// The rows of columns are checked once, by `first_invalid_row`.
static sparcml::linear::Rows<double> as_columns(const In<std::int64_t>& indptr,
                                                const In<std::uint32_t>& rows,
                                                const In<double>& values) {
  require(indptr.size() > 0 && rows.size() == values.size(),
          "columns: indices and values must have the same size");
  require(indptr.data()[indptr.size() - 1] <= static_cast<std::int64_t>(rows.size()),
          "columns: indptr must stay within indices");
  return {indptr.data(), rows.data(), values.data(), nullptr, nullptr};
}

void register_coordinates(nb::module_& m) {
  m.def(
      "linear_scd_steps",
      [](In<std::int64_t> indptr, In<std::uint32_t> rows, In<double> values,
         In<std::int64_t> chosen, In<double> labels, In<double> sample_weights, int loss,
         double l1, double l2, double share, double ranks, Out<double> coordinates,
         Out<double> trust_radius, Out<double> margins, Out<double> margin_changes,
         Out<double> changes) {
        const auto columns = as_columns(indptr, rows, values);
        const ScdObjective objective =
            as_objective(loss, l1, l2, share, ranks, labels, sample_weights);
        const std::size_t count = indptr.size() - 1;
        require_rows(chosen, count);
        require(
            coordinates.size() == count && trust_radius.size() == count,
            "linear_scd_steps: coordinates and trust_radius must have one value per column");
        require(margins.size() == labels.size(),
                "linear_scd_steps: margins must have one value per row");
        require(margin_changes.size() == labels.size() ||
                    (margin_changes.size() == 0 && ranks == 1.0),
                "linear_scd_steps: margin_changes must have one value per row, or be empty on "
                "one rank");
        require(changes.size() == chosen.size(),
                "linear_scd_steps: changes must have one value per chosen column");
        nb::gil_scoped_release nogil;
        sparcml::linear::scd_steps(columns, chosen.data(), chosen.size(), objective,
                                   coordinates.data(), trust_radius.data(), margins.data(),
                                   margin_changes.size() ? margin_changes.data() : nullptr,
                                   changes.data());
      },
      "indptr"_a.noconvert(), "rows"_a.noconvert(), "values"_a.noconvert(),
      "chosen"_a.noconvert(), "labels"_a.noconvert(), "sample_weights"_a.noconvert(), "loss"_a,
      "l1"_a, "l2"_a, "share"_a, "ranks"_a, "coordinates"_a.noconvert(),
      "trust_radius"_a.noconvert(), "margins"_a.noconvert(), "margin_changes"_a.noconvert(),
      "changes"_a.noconvert(), "Make one step per chosen column, in order.");
  m.def(
      "linear_intercept_step",
      [](In<double> labels, In<double> sample_weights, int loss, double share,
         Out<double> margins, Out<double> bias) {
        const ScdObjective objective =
            as_objective(loss, 0, 0, share, 1, labels, sample_weights);
        require(
            margins.size() == labels.size() && bias.size() == 2,
            "linear_intercept_step: margins must have one value per row, and bias two values");
        nb::gil_scoped_release nogil;
        sparcml::linear::intercept_step(objective, margins.data(), margins.size(), bias.data());
      },
      "labels"_a.noconvert(), "sample_weights"_a.noconvert(), "loss"_a, "share"_a,
      "margins"_a.noconvert(), "bias"_a.noconvert(), "Update the intercept and the margins.");
  m.def(
      "linear_combine_columns",
      [](In<std::int64_t> indptr, In<std::uint32_t> rows, In<double> values,
         In<std::int64_t> chosen, In<double> factors, std::size_t size, Out<std::uint32_t> oi,
         Out<double> ov) {
        const auto columns = as_columns(indptr, rows, values);
        require_rows(chosen, indptr.size() - 1);
        require(factors.size() == chosen.size(),
                "linear_combine_columns: factors must have one value per chosen column");
        std::size_t capacity = 0;
        for (std::size_t i = 0; i < chosen.size(); ++i)
          capacity += columns.size(chosen.data()[i]);
        capacity = capacity < size ? capacity : size;
        require(oi.size() >= capacity && ov.size() >= capacity,
                "linear_combine_columns: oi and ov must hold the entries of the columns");
        nb::gil_scoped_release nogil;
        return sparcml::linear::combine<double>(columns, chosen.data(), factors.data(),
                                                chosen.size(), size, oi.data(), ov.data());
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(),
      "chosen"_a.noconvert(), "factors"_a.noconvert(), "size"_a, "oi"_a.noconvert(),
      "ov"_a.noconvert(), "Write the sum of factor * column over the chosen columns, sorted.");
}
