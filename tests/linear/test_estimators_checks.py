"""All of scikit-learn's estimator checks."""

import pytest

pytest.importorskip("sklearn")

from sklearn.utils.estimator_checks import (
    check_class_weight_balanced_linear_classifier,
    parametrize_with_checks,
)

from sparcml.linear import Lasso, LinearSVC, LogisticRegression, Ridge


@parametrize_with_checks([LogisticRegression(), LinearSVC(), Lasso(), Ridge()])
def test_scd(estimator, check):
    check(estimator)


# Weights of rows are not the same as repeating them where rows are drawn into batches.
BY_ROWS = {
    f"check_sample_weight_equivalence_on_{kind}_data": "other batches"
    for kind in ("dense", "sparse")
}


@parametrize_with_checks(
    [
        LinearSVC(loss="hinge", batch_size=8, max_iter=20, tol=1e-3),
        Lasso(solver="sgd", batch_size=8, max_iter=20, tol=1e-3),
    ],
    expected_failed_checks=lambda estimator: BY_ROWS,
)
@pytest.mark.filterwarnings("ignore:.*not converged after")
def test_sgd(estimator, check):
    check(estimator)


# scikit-learn asks this of classes derived from its own only.
@pytest.mark.parametrize("estimator", [LogisticRegression, LinearSVC])
def test_balanced_weights_are_inverse_frequencies(estimator):
    check_class_weight_balanced_linear_classifier(estimator.__name__, estimator())
