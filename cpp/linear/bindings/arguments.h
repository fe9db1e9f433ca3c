// Arguments of the bindings of linear models.
#pragma once

#include "bindings/arrays.h"
#include "linear/models/loss.h"
#include "linear/models/model.h"
#include "linear/models/rows.h"

inline sparcml::linear::Loss as_loss(int loss) {
  require(loss >= 0 && loss <= 3,
          "loss must be 0 (logistic), 1 (hinge), 2 (squared hinge) or 3 (squared)");
  return static_cast<sparcml::linear::Loss>(loss);
}

// Columns are checked once, by `first_invalid_row`: a check per step would cost as much as the
// step.
template <class T>
sparcml::linear::Rows<T> as_rows(const In<std::int64_t>& indptr,
                                 const In<std::uint32_t>& indices, const In<T>& values,
                                 const In<double>& labels, const In<double>& weights) {
  const std::size_t count = labels.size();
  require(indptr.size() == count + 1, "rows: indptr must have one more value than labels");
  require(weights.size() == 0 || weights.size() == count,
          "rows: weights must be empty or have one value per row");
  require(indices.size() == values.size(), "rows: indices and values must have the same size");
  require(indptr.data()[0] >= 0 &&
              indptr.data()[count] <= static_cast<std::int64_t>(indices.size()),
          "rows: indptr must stay within indices");
  return {indptr.data(), indices.data(), values.data(), labels.data(),
          weights.size() ? weights.data() : nullptr};
}

inline void require_rows(const In<std::int64_t>& chosen, std::size_t count) {
  const std::int64_t most = static_cast<std::int64_t>(count);
  bool fine = true;
  for (std::size_t i = 0; i < chosen.size(); ++i)
    fine &= chosen.data()[i] >= 0 && chosen.data()[i] < most;
  require(fine, "rows: chosen rows must be among those given");
}

template <class T>
sparcml::linear::Model<T> as_model(Out<T> weights, Out<T> velocity, Out<std::uint32_t> last,
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
