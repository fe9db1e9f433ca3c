// Losses of a margin z = w.x + b. Labels are -1 and 1; for `squared` any number.
#pragma once

#include <cmath>

namespace sparcml::linear {

enum class Loss { logistic, hinge, squared_hinge, squared };

struct Slope {
  double value, derivative;
};

// exp(-|a|) of a = label * margin; of a negative number, so that it never overflows.
inline double decay(double a) { return std::exp(-std::fabs(a)); }

inline double logistic_derivative(double label, double a, double e) {
  return -label * (a > 0 ? e / (1.0 + e) : 1.0 / (1.0 + e));
}

inline Slope slope(Loss loss, double label, double margin) {
  const double gap = 1.0 - label * margin;
  switch (loss) {
    case Loss::logistic: {
      const double a = label * margin, e = decay(a);
      return {(a > 0 ? 0.0 : -a) + std::log1p(e), logistic_derivative(label, a, e)};
    }
    case Loss::hinge:
      return gap > 0 ? Slope{gap, -label} : Slope{0.0, 0.0};
    case Loss::squared_hinge:
      return gap > 0 ? Slope{gap * gap, -2.0 * label * gap} : Slope{0.0, 0.0};
    default:
      return {0.5 * (margin - label) * (margin - label), margin - label};
  }
}

// The derivative without the value, whose logarithm takes longer.
inline double derivative(Loss loss, double label, double margin) {
  if (loss != Loss::logistic) return slope(loss, label, margin).derivative;
  const double a = label * margin;
  return logistic_derivative(label, a, decay(a));
}

// Upper bound of the second derivative from margin - reach to margin + reach. Not for `hinge`.
inline double curvature(Loss loss, double label, double margin, double reach) {
  switch (loss) {
    case Loss::logistic: {
      const double inside = std::fabs(margin) - reach;
      if (!(inside > 0)) return 0.25;
      const double e = std::exp(-inside);
      return e / ((1.0 + e) * (1.0 + e));
    }
    case Loss::squared_hinge:
      return 1.0 - label * margin + reach > 0 ? 2.0 : 0.0;
    default:
      return 1.0;
  }
}

}  // namespace sparcml::linear
