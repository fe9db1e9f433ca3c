#include <algorithm>
#include <tuple>
#include <vector>

#include "linear/bindings/arguments.h"
#include "linear/models/coordinates.h"

namespace linear = sparcml::linear;

// Steps of coordinate descent on the columns of one rank, whose arrays are checked once.
class CoordinateSteps {
 public:
  // The rows of columns are checked once, by `first_invalid_row`.
  CoordinateSteps(In<std::int64_t> indptr, In<std::uint32_t> rows, In<double> values,
                  In<double> labels, In<double> sample_weights, int loss, double l1, double l2,
                  double ranks, Out<double> coordinates, Out<double> trust_radius,
                  Out<double> margins, Out<double> margin_changes)
      : kept_{indptr, rows, values, labels, sample_weights},
        columns_{indptr.data(), rows.data(), values.data(), nullptr, nullptr},
        objective_{as_loss(loss),
                   l1,
                   l2,
                   1.0 / static_cast<double>(std::max<std::size_t>(labels.size(), 1)),
                   ranks,
                   labels.data(),
                   sample_weights.size() ? sample_weights.data() : nullptr},
        coordinates_(coordinates),
        trust_radius_(trust_radius),
        margins_(margins),
        margin_changes_(margin_changes) {
    require(indptr.size() > 0 && rows.size() == values.size(),
            "columns: indices and values must have the same size");
    const std::size_t count = indptr.size() - 1;
    require(indptr.data()[count] <= static_cast<std::int64_t>(rows.size()),
            "columns: indptr must stay within indices");
    require(sample_weights.size() == 0 || sample_weights.size() == labels.size(),
            "rows: weights must be empty or have one value per row");
    require(objective_.loss != linear::Loss::hinge,
            "SCD: the hinge loss has no second derivative");
    require(coordinates.size() == count && trust_radius.size() == count,
            "SCD: coordinates and trust_radius must have one value per column");
    require(margins.size() == labels.size(), "SCD: margins must have one value per row");
    require(
        margin_changes.size() == labels.size() || (margin_changes.size() == 0 && ranks == 1.0),
        "SCD: margin_changes must have one value per row, or be empty on one rank");
  }

  void run(In<std::int64_t> chosen) {
    require(margin_changes_.size() == 0, "SCD: several ranks must exchange changes");
    require_rows(chosen, coordinates_.size());
    nb::gil_scoped_release nogil;
    step(chosen);
  }

  std::size_t changes(In<std::int64_t> chosen, Out<std::uint32_t> indices, Out<double> values) {
    require_rows(chosen, coordinates_.size());
    const std::size_t rows = margin_changes_.size();
    require(indices.size() >= rows && values.size() >= rows,
            "SCD: indices and values must have one value per row");
    nb::gil_scoped_release nogil;
    step(chosen);
    return linear::take_margin_changes(columns_, chosen.data(), chosen.size(), steps_.data(),
                                       rows, margin_changes_.data(), indices.data(),
                                       values.data());
  }

  void step_intercept(Out<double> bias) {
    require(bias.size() == 2, "SCD: bias must have two values");
    nb::gil_scoped_release nogil;
    linear::intercept_step(objective_, margins_.data(), margins_.size(), bias.data());
  }

 private:
  void step(const In<std::int64_t>& chosen) {
    if (steps_.size() < chosen.size()) steps_.resize(chosen.size());
    linear::scd_steps(columns_, chosen.data(), chosen.size(), objective_, coordinates_.data(),
                      trust_radius_.data(), margins_.data(),
                      margin_changes_.size() ? margin_changes_.data() : nullptr, steps_.data());
  }

  const std::tuple<In<std::int64_t>, In<std::uint32_t>, In<double>, In<double>, In<double>>
      kept_;  // the arrays of the columns and of the rows
  const linear::Rows<double> columns_;
  const linear::ScdObjective objective_;
  Out<double> coordinates_, trust_radius_, margins_, margin_changes_;
  std::vector<double> steps_;  // of the chosen coordinates
};

void register_scd(nb::module_& m) {
  nb::class_<CoordinateSteps>(m, "CoordinateSteps", "Steps of coordinate descent on one rank.")
      .def(nb::init<In<std::int64_t>, In<std::uint32_t>, In<double>, In<double>, In<double>,
                    int, double, double, double, Out<double>, Out<double>, Out<double>,
                    Out<double>>(),
           "indptr"_a.noconvert(), "rows"_a.noconvert(), "values"_a.noconvert(),
           "labels"_a.noconvert(), "sample_weights"_a.noconvert(), "loss"_a, "l1"_a, "l2"_a,
           "ranks"_a, "coordinates"_a.noconvert(), "trust_radius"_a.noconvert(),
           "margins"_a.noconvert(), "margin_changes"_a.noconvert())
      .def("run", &CoordinateSteps::run, "chosen"_a.noconvert(),
           "Make one step per chosen column, in order, on this rank alone.")
      .def("changes", &CoordinateSteps::changes, "chosen"_a.noconvert(),
           "indices"_a.noconvert(), "values"_a.noconvert(),
           "Make the steps, and write the changes of the margins. Return their number.")
      .def("step_intercept", &CoordinateSteps::step_intercept, "bias"_a.noconvert(),
           "Update the intercept and the margins.");
}
