"""Sparse linear models over many processes."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ..errors import DataError as DataError
from .bundled import spam as spam
from .descended import Descended as Descended
from .generate import url_like as url_like
from .generate import webspam_like as webspam_like
from .hashing import Hashing as Hashing
from .losses import LOSSES as LOSSES
from .penalty import Penalty as Penalty
from .progress import Progress as Progress
from .read import load_rows as load_rows
from .read import read_svmlight as read_svmlight
from .read import save_rows as save_rows
from .rows import Rows as Rows
from .scd import SCD as SCD
from .sgd import SGD as SGD
from .state import State as State
from .steps import Constant as Constant
from .steps import Exponential as Exponential
from .steps import Inverse as Inverse
from .steps import WarmUp as WarmUp
from .write import write_svmlight as write_svmlight

if TYPE_CHECKING:
    from .estimators import Lasso as Lasso
    from .estimators import LinearSVC as LinearSVC
    from .estimators import LogisticRegression as LogisticRegression
    from .estimators import Ridge as Ridge

# These need scikit-learn, and all the rest does not.
_ESTIMATORS = ("Lasso", "LinearSVC", "LogisticRegression", "Ridge")


def __getattr__(name: str) -> Any:
    if name not in _ESTIMATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if find_spec("sklearn") is None:
        raise ImportError(
            f"{name} needs scikit-learn; install it with: pip install sparcml[linear]"
        )
    from . import estimators

    return getattr(estimators, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_ESTIMATORS})
