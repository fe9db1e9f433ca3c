"""Estimators with the conventions of scikit-learn, one a file."""

from .lasso import Lasso as Lasso
from .linear_svc import LinearSVC as LinearSVC
from .logistic_regression import LogisticRegression as LogisticRegression
from .ridge import Ridge as Ridge
