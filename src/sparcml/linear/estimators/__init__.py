"""Estimators with the conventions of scikit-learn."""

from .linear_svc import LinearSVC as LinearSVC
from .logistic_regression import LogisticRegression as LogisticRegression
from .regressors import Lasso as Lasso
from .regressors import Ridge as Ridge
