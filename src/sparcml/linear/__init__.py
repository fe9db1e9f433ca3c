"""Sparse linear models on many processes."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ..errors import DataError as DataError
from .data import load_rows as load_rows
from .data import read_svmlight as read_svmlight
from .data import save_rows as save_rows
from .data.bundled import spam as spam
from .data.hashing import Hashing as Hashing
from .data.rows import Rows as Rows
from .data.svmlight import write_svmlight as write_svmlight
from .data.synthetic import url_like as url_like
from .data.synthetic import webspam_like as webspam_like
from .solvers.learning_rate import Constant as Constant
from .solvers.learning_rate import ExponentialDecay as ExponentialDecay
from .solvers.learning_rate import InverseDecay as InverseDecay
from .solvers.learning_rate import WarmUp as WarmUp
from .solvers.objective import LOSSES as LOSSES
from .solvers.objective import Penalty as Penalty
from .solvers.scd import SCD as SCD
from .solvers.scd_state import SCDState as SCDState
from .solvers.sgd import SGD as SGD
from .solvers.sgd_state import SGDState as SGDState
from .solvers.solver_progress import SolverProgress as SolverProgress

if TYPE_CHECKING:
    from .estimators import Lasso as Lasso
    from .estimators import LinearSVC as LinearSVC
    from .estimators import LogisticRegression as LogisticRegression
    from .estimators import Ridge as Ridge

# These need scikit-learn; nothing else does.
_ESTIMATORS = ("Lasso", "LinearSVC", "LogisticRegression", "Ridge")


__all__ = [
    "LOSSES",
    "SCD",
    "SGD",
    "Constant",
    "DataError",
    "ExponentialDecay",
    "Hashing",
    "InverseDecay",
    "Penalty",
    "Rows",
    "SCDState",
    "SGDState",
    "SolverProgress",
    "WarmUp",
    "load_rows",
    "read_svmlight",
    "save_rows",
    "spam",
    "url_like",
    "webspam_like",
    "write_svmlight",
]
if find_spec("sklearn") is not None:
    __all__ += ["Lasso", "LinearSVC", "LogisticRegression", "Ridge"]


def __getattr__(name: str) -> Any:
    if name not in _ESTIMATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if find_spec("sklearn") is None:
        from ..errors import how_to_install

        raise ImportError(
            f"{name} needs scikit-learn; install it with: {how_to_install('linear')}",
            name="sklearn",
        )
    from . import estimators

    return getattr(estimators, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_ESTIMATORS})
