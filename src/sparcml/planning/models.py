"""Shapes of models: by name, from a file, or from a number of parameters."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ..units import parse_count
from . import architectures

if TYPE_CHECKING:
    from collections.abc import Callable

    from .architectures import Shapes

MAX_PARAMETERS = 10**12  # anything beyond is a typing error


@dataclass(frozen=True)
class Model:
    """Shapes of a model and the computing time of a step.

    Attributes:
        name: Name of the model.
        tensors: Shapes of its tensors.
        source: Source of the shapes.
        step: Seconds of computing per step, if known or assumed.
        step_source: Source of that time.
    """

    name: str
    tensors: Shapes
    source: str
    step: float | None = None
    step_source: str = ""

    @cached_property
    def parameters(self) -> int:
        """Number of values of a gradient."""
        return sum(map(math.prod, self.tensors))


def _images(
    name: str, build: Callable[[], Shapes], source: str, gmacs: float
) -> tuple[str, Model]:
    # A P100 in float32 reaches about 5.5 of its 9.3 TFLOP/s in these networks (ResNet-50:
    # about 220 images per second). A training step costs three forward passes; a
    # multiplication and an addition count as two operations.
    batch, operations_per_second = 32, 5.5e12
    step = 3 * 2 * gmacs * 1e9 * batch / operations_per_second
    about = f"assumed: {batch} images, {gmacs:g} GMAC each, a P100 at 5.5 TFLOP/s"
    return name, Model(name, build(), source, step, about)


def _tokens(
    name: str, build: Callable[[], Shapes], source: str, batch: int
) -> tuple[str, Model]:
    # 6 operations per parameter and token; an A100 in bfloat16 at 40 % of its 312 TFLOP/s.
    model = Model(name, build(), source)
    step = 6 * model.parameters * batch / (0.4 * 312e12)
    about = f"assumed: {batch} tokens, an A100 at 40 % of its peak"
    return name, Model(name, model.tensors, source, step, about)


HE = "He et al. 2016, tensor by tensor"
WIDE = "He et al. 2016 with every layer four times as wide, as in the SparCML talk"
# Functions, so that a model is built only when it is used.
_BUILT: dict[str, Callable[[], tuple[str, Model]]] = {
    "alexnet": lambda: _images(
        "alexnet",
        architectures.alexnet,
        "Krizhevsky 2014, one tower, tensor by tensor",
        0.71,
    ),
    "resnet50": lambda: _images(
        "resnet50", lambda: architectures.resnet((3, 4, 6, 3), True), HE, 4.1
    ),
    "resnet152": lambda: _images(
        "resnet152", lambda: architectures.resnet((3, 8, 36, 3), True), HE, 11.5
    ),
    "4xresnet18": lambda: _images(
        "4xresnet18", lambda: architectures.resnet((2, 2, 2, 2), False, 256), WIDE, 16 * 1.8
    ),
    "4xresnet34": lambda: _images(
        "4xresnet34", lambda: architectures.resnet((3, 4, 6, 3), False, 256), WIDE, 16 * 3.6
    ),
    "asr-lstm": lambda: (
        "asr-lstm",
        Model(
            "asr-lstm",
            architectures.tiles(60_000_000),
            "the talk's number, 60 M; its tensors are not published: squares of 1024",
            # 6 operations per parameter and frame; a V100 in float32 at 9 of its 15 TFLOP/s
            6 * 60e6 * 4096 / 9e12,
            "assumed: 4096 frames, a V100 at 9 TFLOP/s",
        ),
    ),
    "bert-large": lambda: _tokens(
        "bert-large",
        lambda: architectures.bert(24, 1024),
        "Devlin et al. 2019, tensor by tensor",
        8192,
    ),
    "gpt2": lambda: _tokens(
        "gpt2",
        lambda: architectures.gpt2(12, 768),
        "Radford et al. 2019, tensor by tensor",
        16384,
    ),
    "gpt2-xl": lambda: _tokens(
        "gpt2-xl",
        lambda: architectures.gpt2(48, 1600),
        "Radford et al. 2019, tensor by tensor",
        8192,
    ),
    "llama-3.2-1b": lambda: _tokens(
        "llama-3.2-1b",
        lambda: architectures.llama(16, 2048, 8192, 512, 128256, tied=True),
        "Meta 2024, its published configuration, tensor by tensor",
        8192,
    ),
}
MODELS = tuple(_BUILT)


def model(name: str) -> Model:
    """Return a model by name, or from a JSON file: {"tensor": [rows, columns], ...}.

    The file may also hold a list of shapes, or sizes in place of shapes.
    """
    if build := _BUILT.get(name.strip().lower()):
        return build()[1]
    path = Path(name)
    if path.suffix == ".json" or path.is_file():
        return Model(path.name, _read(path), f"the shapes in {path.name}")
    raise ValueError(
        f"plan: model must be one of {', '.join(MODELS)}, or a JSON file with shapes of "
        f"tensors, got {name!r}"
    )


def of_size(text: str) -> Model:
    """Return a model with a number of parameters such as 25.6M or 7B."""
    try:
        count = parse_count(text)
    except ValueError:
        raise ValueError(
            f"plan: params must be a number such as 25.6M or 7B, got {text!r}"
        ) from None
    if not 1 <= count <= MAX_PARAMETERS:
        raise ValueError(f"plan: params must be from 1 to 1T, got {text!r}")
    n = round(count)
    return Model(
        f"{text.strip()} parameters", architectures.tiles(n), "squares of 1024, assumed"
    )


def _read(path: Path) -> Shapes:
    try:
        data = json.loads(path.read_text())
    except FileNotFoundError:
        raise ValueError(f"plan: no model file at {str(path)!r}") from None
    except (OSError, ValueError) as error:
        raise ValueError(
            f"plan: model file {str(path)!r} cannot be read: {error}"
        ) from None
    shapes = list(data.values()) if isinstance(data, dict) else data
    if not isinstance(shapes, list) or not shapes:
        raise ValueError(_INVALID.format(path, "no shapes"))
    return tuple(_shape(entry, path) for entry in shapes)


_INVALID = (
    'plan: model file {!s}: must have shapes such as {{"fc.weight": [1000, 2048]}}, got {}'
)


def _shape(entry: object, path: Path) -> tuple[int, ...]:
    sides = entry if isinstance(entry, list) else [entry]
    if not sides or not all(type(n) is int and 1 <= n <= MAX_PARAMETERS for n in sides):
        raise ValueError(_INVALID.format(path, json.dumps(entry)))
    return tuple(sides)
