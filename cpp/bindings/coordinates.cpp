#include "kernels/linear/coordinates.h"

#include <tuple>
#include <vector>

#include "bindings/linear.h"
#include "messages/allgather_add.h"

namespace ms = sparcml::messages;
using sparcml::linear::scd_steps, sparcml::linear::ScdObjective;
using sparcml::linear::take_margin_changes;

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

// Checks the arrays that steps change.
static void require_steps(std::size_t columns, std::size_t rows, double ranks,
                          const Out<double>& coordinates, const Out<double>& trust_radius,
                          const Out<double>& margins, const Out<double>& margin_changes) {
  require(coordinates.size() == columns && trust_radius.size() == columns,
          "linear_scd_steps: coordinates and trust_radius must have one value per column");
  require(margins.size() == rows, "linear_scd_steps: margins must have one value per row");
  require(margin_changes.size() == rows || (margin_changes.size() == 0 && ranks == 1.0),
          "linear_scd_steps: margin_changes must have one value per row, or be empty on one "
          "rank");
}

// The changes of the margins by steps on one block of the chosen columns after the other. The
// last blocks may be empty: all ranks make as many rounds. The definition is `MarginChanges` in
// linear/solvers/scd.py.
class ScdRounds final : public ms::Source<double> {
 public:
  ScdRounds(In<std::int64_t> indptr, In<std::uint32_t> rows, In<double> values,
            In<std::int64_t> chosen, std::size_t block_size, std::size_t rounds,
            In<double> labels, In<double> weights, int loss, double l1, double l2, double share,
            double ranks, Out<double> coordinates, Out<double> trust_radius,
            Out<double> margins, Out<double> margin_changes)
      : arrays_{indptr,  rows,        values,       chosen,  labels,
                weights, coordinates, trust_radius, margins, margin_changes},
        columns_(as_columns(indptr, rows, values)),
        objective_(as_objective(loss, l1, l2, share, ranks, labels, weights)),
        chosen_(chosen.data()),
        left_(chosen.size()),
        block_(block_size),
        rounds_(rounds) {
    const std::size_t count = indptr.size() - 1;
    require_rows(chosen, count);
    require_steps(count, labels.size(), ranks, coordinates, trust_radius, margins,
                  margin_changes);
    require(margin_changes.size() == labels.size(),
            "SCDRounds: margin_changes must have one value per row");
    changes_.resize(block_size);
  }

  std::size_t size() const override { return std::get<9>(arrays_).size(); }

  bool next(ms::Vector<double>& x) override {
    if (!rounds_) return false;
    --rounds_;
    const std::size_t count = std::min(block_, left_), rows = margin_changes().size();
    scd_steps(columns_, chosen_, count, objective_, std::get<6>(arrays_).data(),
              std::get<7>(arrays_).data(), std::get<8>(arrays_).data(), margin_changes().data(),
              changes_.data());
    const std::size_t room = std::min(entries(columns_, chosen_, count), rows);
    if (indices_.size() < room) indices_.resize(room), values_.resize(room);
    x = {};
    x.blocks = rows;
    x.nnz = take_margin_changes(columns_, chosen_, count, changes_.data(), rows,
                                margin_changes().data(), indices_.data(), values_.data());
    x.indices = indices_.data(), x.values = values_.data();
    chosen_ += count, left_ -= count;
    return true;
  }

 private:
  Out<double>& margin_changes() { return std::get<9>(arrays_); }

  std::tuple<In<std::int64_t>, In<std::uint32_t>, In<double>, In<std::int64_t>, In<double>,
             In<double>, Out<double>, Out<double>, Out<double>, Out<double>>
      arrays_;
  sparcml::linear::Rows<double> columns_;
  ScdObjective objective_;
  const std::int64_t* chosen_;
  std::size_t left_, block_, rounds_;
  std::vector<double> changes_, values_;
  std::vector<std::uint32_t> indices_;
};

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
        require_steps(count, labels.size(), ranks, coordinates, trust_radius, margins,
                      margin_changes);
        require(changes.size() == chosen.size(),
                "linear_scd_steps: changes must have one value per chosen column");
        nb::gil_scoped_release nogil;
        scd_steps(columns, chosen.data(), chosen.size(), objective, coordinates.data(),
                  trust_radius.data(), margins.data(),
                  margin_changes.size() ? margin_changes.data() : nullptr, changes.data());
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
      "linear_take_margin_changes",
      [](In<std::int64_t> indptr, In<std::uint32_t> rows, In<double> values,
         In<std::int64_t> chosen, In<double> changes, Out<double> margin_changes,
         Out<std::uint32_t> oi, Out<double> ov) {
        const auto columns = as_columns(indptr, rows, values);
        require_rows(chosen, indptr.size() - 1);
        require(changes.size() == chosen.size(),
                "linear_take_margin_changes: changes must have one value per chosen column");
        const std::size_t room =
            std::min(entries(columns, chosen.data(), chosen.size()), margin_changes.size());
        require(oi.size() >= room && ov.size() >= room,
                "linear_take_margin_changes: oi and ov must hold the entries of the columns");
        nb::gil_scoped_release nogil;
        return take_margin_changes(columns, chosen.data(), chosen.size(), changes.data(),
                                   margin_changes.size(), margin_changes.data(), oi.data(),
                                   ov.data());
      },
      "indptr"_a.noconvert(), "rows"_a.noconvert(), "values"_a.noconvert(),
      "chosen"_a.noconvert(), "changes"_a.noconvert(), "margin_changes"_a.noconvert(),
      "oi"_a.noconvert(), "ov"_a.noconvert(),
      "Move the changes of the margins to sorted sparse entries; return their number.");
  nb::class_<ScdRounds>(m, "SCDRounds", "Rounds of coordinate descent on one rank.")
      .def(nb::init<In<std::int64_t>, In<std::uint32_t>, In<double>, In<std::int64_t>,
                    std::size_t, std::size_t, In<double>, In<double>, int, double, double,
                    double, double, Out<double>, Out<double>, Out<double>, Out<double>>(),
           "indptr"_a.noconvert(), "rows"_a.noconvert(), "values"_a.noconvert(),
           "chosen"_a.noconvert(), "block_size"_a, "rounds"_a, "labels"_a.noconvert(),
           "sample_weights"_a.noconvert(), "loss"_a, "l1"_a, "l2"_a, "share"_a, "ranks"_a,
           "coordinates"_a.noconvert(), "trust_radius"_a.noconvert(), "margins"_a.noconvert(),
           "margin_changes"_a.noconvert());
}
