"""The compiled inner loops of linear models."""

from typing import Annotated, overload

import numpy
from numpy.typing import NDArray


def mark_columns(columns: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], bitmap: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Set the bits of the columns."""

def count_columns(bitmap: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], before: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """
    Write the number of bits set before each word. Return the number of all.
    """

def column_positions(columns: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], bitmap: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], before: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Write the positions of columns among the active ones; 2^32 - 1 for others.
    """

class CoordinateSteps:
    """Steps of coordinate descent on one rank."""

    def __init__(self, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sample_weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], loss: int, l1: float, l2: float, ranks: float, coordinates: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], trust_radius: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], margins: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], margin_changes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    def run(self, chosen: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Make one step per chosen column, in order, on this rank alone."""

    def changes(self, chosen: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> int:
        """
        Make the steps, and write the changes of the margins. Return their number.
        """

    def step_intercept(self, bias: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """Update the intercept and the margins."""

class GradientSteps32:
    """Steps of SGD on one rank."""

    def __init__(self, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sample_weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], rates: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], shares: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], loss: int, intercept: float, weights: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], velocity: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], last: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], table: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], powers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], l1: float, l2: float, losses: float) -> None: ...

    @property
    def size(self) -> int:
        """Size of the gradients."""

    @property
    def capacity(self) -> int:
        """Maximum number of entries of a gradient."""

    @property
    def losses(self) -> float:
        """Sum of the losses of the rows so far."""

    def gradient(self, indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> int:
        """Write the gradient of the next batch. Return its number of entries."""

    def apply(self, indices: object | None, values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Make the step along the sum of the last gradient over all ranks."""

    def run(self) -> float:
        """Make all steps on this rank alone. Return the losses."""

@overload
def flush_weights(weights: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], velocity: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], last: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], table: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], powers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def flush_weights(weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], velocity: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], last: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], table: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], powers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Apply everything pending to all weights."""

@overload
def row_margins(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sample_weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def row_margins(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sample_weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Compute w.x of each row."""

class GradientSteps64:
    """Steps of SGD on one rank."""

    def __init__(self, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sample_weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], rates: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], shares: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], loss: int, intercept: float, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], velocity: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], last: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], table: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], powers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], l1: float, l2: float, losses: float) -> None: ...

    @property
    def size(self) -> int:
        """Size of the gradients."""

    @property
    def capacity(self) -> int:
        """Maximum number of entries of a gradient."""

    @property
    def losses(self) -> float:
        """Sum of the losses of the rows so far."""

    def gradient(self, indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> int:
        """Write the gradient of the next batch. Return its number of entries."""

    def apply(self, indices: object | None, values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Make the step along the sum of the last gradient over all ranks."""

    def run(self) -> float:
        """Make all steps on this rank alone. Return the losses."""

def first_invalid_row(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], features: int) -> int:
    """
    Return the first row whose columns do not ascend or reach features, else their number.
    """

SVMLIGHT_PADDING: int = 8

def svmlight_row_bytes(entries: int) -> int:
    """Return the maximum bytes of a row."""

@overload
def svmlight_format(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], row: int, base: int, out: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> tuple[int, int]: ...

@overload
def svmlight_format(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], row: int, base: int, out: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> tuple[int, int]:
    """
    Write the rows from row that are certain to fit. Return (bytes, next row).
    """

class SvmlightParser32:
    """Parser of rows in the SVMlight format."""

    def __init__(self, lowest: int, highest: int) -> None: ...

    def feed(self, text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], size: int, stop: int) -> int:
        """Read the complete lines that start before stop. Return their bytes."""

    @property
    def failure(self) -> tuple[int, int, bytes] | None:
        """The first error as (line, column, message), or None."""

    @property
    def lines(self) -> int:
        """Number of lines read."""

    @property
    def rows(self) -> int: ...

    @property
    def words(self) -> list[bytes]:
        """Labels that are words; their labels are positions in it."""

    @property
    def smallest(self) -> int:
        """Smallest index so far; highest if there is none."""

    @property
    def largest(self) -> int:
        """Largest index so far."""

    def take(self) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.uint32], dict(shape=(None,))], Annotated[NDArray[numpy.float32], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """
        Return (indptr, indices, values, labels). The parser cannot be used afterwards.
        """

class SvmlightParser64:
    """Parser of rows in the SVMlight format."""

    def __init__(self, lowest: int, highest: int) -> None: ...

    def feed(self, text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], size: int, stop: int) -> int:
        """Read the complete lines that start before stop. Return their bytes."""

    @property
    def failure(self) -> tuple[int, int, bytes] | None:
        """The first error as (line, column, message), or None."""

    @property
    def lines(self) -> int:
        """Number of lines read."""

    @property
    def rows(self) -> int: ...

    @property
    def words(self) -> list[bytes]:
        """Labels that are words; their labels are positions in it."""

    @property
    def smallest(self) -> int:
        """Smallest index so far; highest if there is none."""

    @property
    def largest(self) -> int:
        """Largest index so far."""

    def take(self) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.uint32], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """
        Return (indptr, indices, values, labels). The parser cannot be used afterwards.
        """
