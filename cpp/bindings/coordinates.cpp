#include "kernels/linear/coordinates.h"

#include "bindings/linear.h"
#include "kernels/linear/gradient.h"

using sparcml::linear::Descent;

static Descent about(int loss, double l1, double l2, double share, double parties,
                     const In<double>& labels, const In<double>& weights) {
  require(weights.size() == 0 || weights.size() == labels.size(),
          "rows: weights must be empty, or one a row");
  require(loss != static_cast<int>(sparcml::linear::Loss::hinge),
          "linear_scd_steps: the hinge loss has no second derivative");
  return {as_loss(loss),
          l1,
          l2,
          share,
          parties,
          labels.data(),
          weights.size() ? weights.data() : nullptr};
}

// The rows of columns are looked at once, by `misplaced`.
static sparcml::linear::Rows<double> as_columns(const In<std::int64_t>& indptr,
                                                const In<std::uint32_t>& rows,
                                                const In<double>& values) {
  require(indptr.size() > 0 && rows.size() == values.size(),
          "columns: indices and values must be equally many");
  require(indptr.data()[indptr.size() - 1] <= static_cast<std::int64_t>(rows.size()),
          "columns: indptr must stay within indices");
  return {indptr.data(), rows.data(), values.data(), nullptr, nullptr};
}

void register_coordinates(nb::module_& m) {
  m.def(
      "linear_scd_steps",
      [](In<std::int64_t> indptr, In<std::uint32_t> rows, In<double> values,
         In<std::int64_t> chosen, In<double> labels, In<double> sample_weights, int loss,
         double l1, double l2, double share, double parties, Out<double> coordinates,
         Out<double> trust, Out<double> margins, Out<double> moved, Out<double> changes) {
        const auto columns = as_columns(indptr, rows, values);
        const Descent all = about(loss, l1, l2, share, parties, labels, sample_weights);
        const std::size_t count = indptr.size() - 1;
        require_rows(chosen, count);
        require(coordinates.size() == count && trust.size() == count,
                "linear_scd_steps: one coordinate and its trust for each column");
        require(margins.size() == labels.size(), "linear_scd_steps: one margin a row");
        require(moved.size() == labels.size() || (moved.size() == 0 && parties == 1.0),
                "linear_scd_steps: moved must be as margins, or empty for one party");
        require(changes.size() == chosen.size(),
                "linear_scd_steps: one change a chosen column");
        nb::gil_scoped_release nogil;
        sparcml::linear::descend(columns, chosen.data(), chosen.size(), all, coordinates.data(),
                                 trust.data(), margins.data(),
                                 moved.size() ? moved.data() : nullptr, changes.data());
      },
      "indptr"_a.noconvert(), "rows"_a.noconvert(), "values"_a.noconvert(),
      "chosen"_a.noconvert(), "labels"_a.noconvert(), "sample_weights"_a.noconvert(), "loss"_a,
      "l1"_a, "l2"_a, "share"_a, "parties"_a, "coordinates"_a.noconvert(),
      "trust"_a.noconvert(), "margins"_a.noconvert(), "moved"_a.noconvert(),
      "changes"_a.noconvert(), "Steps on the chosen columns, one after the other");
  m.def(
      "linear_intercept_step",
      [](In<double> labels, In<double> sample_weights, int loss, double share,
         Out<double> margins, Out<double> bias) {
        const Descent all = about(loss, 0, 0, share, 1, labels, sample_weights);
        require(margins.size() == labels.size() && bias.size() == 2,
                "linear_intercept_step: one margin a row, and the intercept with its trust");
        nb::gil_scoped_release nogil;
        sparcml::linear::shift(all, margins.data(), margins.size(), bias.data());
      },
      "labels"_a.noconvert(), "sample_weights"_a.noconvert(), "loss"_a, "share"_a,
      "margins"_a.noconvert(), "bias"_a.noconvert(), "The intercept's step");
  m.def(
      "linear_combine_columns",
      [](In<std::int64_t> indptr, In<std::uint32_t> rows, In<double> values,
         In<std::int64_t> chosen, In<double> slopes, std::size_t size, Out<std::uint32_t> oi,
         Out<double> ov) {
        const auto columns = as_columns(indptr, rows, values);
        require_rows(chosen, indptr.size() - 1);
        require(slopes.size() == chosen.size(),
                "linear_combine_columns: one slope a chosen row");
        std::size_t room = 0;
        for (std::size_t i = 0; i < chosen.size(); ++i) room += columns.size(chosen.data()[i]);
        room = room < size ? room : size;
        require(
            oi.size() >= room && ov.size() >= room,
            "linear_combine_columns: the output must have room for the entries of the rows");
        nb::gil_scoped_release nogil;
        return sparcml::linear::combine<double>(columns, chosen.data(), slopes.data(),
                                                chosen.size(), size, oi.data(), ov.data());
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(),
      "chosen"_a.noconvert(), "slopes"_a.noconvert(), "size"_a, "oi"_a.noconvert(),
      "ov"_a.noconvert(), "The sum of slope * x over the chosen rows, sorted");
}
