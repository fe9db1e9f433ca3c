// What the bindings of linear models have in common.
#pragma once

#include "bindings/arrays.h"
#include "kernels/linear/loss.h"
#include "kernels/linear/rows.h"

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
