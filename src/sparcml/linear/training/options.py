"""Options of `sparcml fit` as users write them: conflicts, and how to match a checkpoint."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

from ...aggregate import Compressed
from ...collectives import ALLREDUCES
from ...registry import short_repr

if TYPE_CHECKING:
    from dataclasses import Field

    from ..solvers.scd import SCD
    from ..solvers.sgd import SGD
    from .config import TrainingConfig


def option_name(name: str) -> str:
    """Return the option of a field of the configuration."""
    return f"--{name.replace('_', '-')}"


def default_of(field: Field[Any]) -> Any:
    """Return the default value of a dataclass field."""
    return field.default if field.default_factory is MISSING else field.default_factory()


def describe_solver(solver: SGD | SCD) -> str:
    """Return the solver's repr without the fields that have their default value."""
    changed = [
        f"{f.name}={short_repr(value)}"
        for f in fields(solver)
        if (value := getattr(solver, f.name)) != default_of(f)
    ]
    return f"{type(solver).__name__}({', '.join(changed)})"


def check_effective(config: TrainingConfig) -> None:
    """Raise ValueError for an option that another one would make ineffective."""
    given = {f.name for f in fields(config) if getattr(config, f.name) != default_of(f)}
    for f in fields(config):
        solver = f.metadata.get("solver")
        if f.name in given and solver not in (None, config.solver):
            raise ValueError(
                f"{option_name(f.name)} must be left out with --solver {config.solver}; it is "
                f"an option of --solver {solver}"
            )
    if config.communication == "dense":
        for name in ("compress", "algorithm"):
            if name in given:
                raise ValueError(
                    f"{option_name(name)} must be left out with --communication dense, the "
                    f"engine's own allreduce; use one of them"
                )
    if "method" in given and config.topology is None:
        raise ValueError("--method needs neighbours; add --topology ring")
    _check_algorithm(config)
    if "decay" in given and config.schedule == "constant":
        raise ValueError(
            "--decay needs a schedule that decays; add --schedule inverse or exponential"
        )
    stopping = [name for name in ("patience", "tol") if name in given]
    if stopping and config.solver == "sgd" and not config.validation_fraction:
        raise ValueError(
            f"{option_name(stopping[0])} needs a validation set; add --validation-fraction "
            f"0.1"
        )


def check_local_steps(config: TrainingConfig, steps: int, ranks: int | None) -> None:
    """Raise ValueError for options that are invalid or have no effect with local steps.

    Args:
        config: The options.
        steps: The given number of local steps.
        ranks: Number of ranks, if it is known.
    """
    if steps < 1:
        raise ValueError(f"fit: --local-steps must be >= 1, got {steps}")
    remedies = {"l1": "use --l2", "momentum": "ranks have no common gradient"}
    for name, remedy in remedies.items():
        if getattr(config, name):
            raise ValueError(f"fit: --{name} must be left out with --local-steps; {remedy}")
    if config.topology is not None:
        raise ValueError(
            "fit: --topology must be left out with --local-steps; use one of them"
        )
    method = config.aggregation()
    if method is not None and not method.returns_mean:
        raise ValueError(
            f"fit: --compress must return a mean with --local-steps, got {config.compress}; use "
            f"topk:0.01"
        )
    if ranks == 1:
        raise ValueError("fit: --local-steps needs several ranks; add -n")


def _check_algorithm(config: TrainingConfig) -> None:
    if config.algorithm == "auto":
        return
    compressed = isinstance(config.aggregation(), Compressed)
    if config.compress is not None and not compressed:
        raise ValueError(
            f"--algorithm must be left out with --compress {config.compress}, which has its own"
        )
    if ALLREDUCES[config.algorithm].lossy and not compressed:
        raise ValueError(
            f"--algorithm {config.algorithm} needs error feedback for what it drops; add "
            f"--compress topk:0.01"
        )


def resume_remedy(config: TrainingConfig, name: str, saved: Any) -> str:
    """Return how to resume a run whose checkpoint has another value of an option or fact."""
    metadata = {f.name: f.metadata for f in fields(config)}
    if name == "weighted":
        return "use the same --weights and --class-weight"
    if name not in metadata or name == "features":
        return "resume with the same files, or choose another folder"
    if saved is None:
        return f"leave out {option_name(name)}"
    if isinstance(saved, bool):
        yes = option_name(name)
        flags = metadata[name].get("flag") or f"{yes}/--no-{yes[2:]}"
        return f"add {flags.split('/')[not saved]}"
    return f"use {option_name(name)} {saved}"
