"""Old names of modules, in user code and in pickles."""

import pickle
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from sparcml.moved import MOVED, PICKLED

FILES = Path(__file__).parent / "golden" / "files"


@pytest.mark.parametrize("old", sorted(MOVED.keys() - PICKLED))
def test_old_names_of_modules_warn(old):
    name = f"sparcml.{old}"
    sys.modules.pop(name, None)
    with pytest.warns(DeprecationWarning, match=f"{name} is sparcml.{MOVED[old]} now"):
        found = import_module(name)
    new = import_module(f"sparcml.{MOVED[old]}")
    names = [n for n in vars(new) if not n.startswith("_")]
    assert names
    assert all(getattr(found, n) is getattr(new, n) for n in names)


@pytest.mark.parametrize("solver", ["sgd", "scd"])
def test_pickled_estimators_of_version_0_2_load(solver):
    """Written by commit 326361f, with the predictions of rows that are ones and zeros."""
    model, predicted = pickle.loads((FILES / f"estimator-{solver}.pkl").read_bytes())
    rows = np.eye(8, dtype=np.float32)
    np.testing.assert_array_equal(model.decision_function(rows), predicted)
