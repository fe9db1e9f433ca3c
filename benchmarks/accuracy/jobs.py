"""Jobs of the accuracy benchmark, the most important ones first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .roster import DENSE, MANY, ROSTER, Setting, built, label
from .workloads import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Iterator

SEEDS = (0, 1, 2)
DOUBLE = 2.0

Row = dict[str, Any]
Key = tuple[Any, ...]


class Job(NamedTuple):
    """One training run.

    Attributes:
        network: Name of the workload.
        method: Name in the roster.
        ranks: World size; 1 for dense, whose result does not depend on it.
        learning_rate: Maximum learning rate.
        seed: Seed.
    """

    network: str
    method: str
    ranks: int
    learning_rate: float
    seed: int

    @property
    def multiple(self) -> float:
        """Multiple of the dense learning rate."""
        return rounded(self.learning_rate / WORKLOADS[self.network].learning_rate)

    def __str__(self) -> str:
        name = label(self.method, self.multiple)
        return f"{self.network} {name} {self.ranks} ranks seed {self.seed}"

    @property
    def key(self) -> Key:
        """All that the result depends on."""
        about = self.about
        return tuple(about[name] for name in KEY)

    @property
    def about(self) -> Row:
        """Columns of the row that describe the run."""
        work = WORKLOADS[self.network]
        setting = Setting(work, self.ranks, 0, self.learning_rate)
        return {
            "network": self.network,
            "settings": work.settings,
            "method": self.method,
            "built": built(self.method, setting),
            "ranks": self.ranks,
            "learning_rate": rounded(self.learning_rate),
            "seed": self.seed,
        }


KEY = ("network", "settings", "method", "built", "ranks", "learning_rate", "seed")


def rounded(number: float) -> float:
    """Return a number with the digits that are saved."""
    return float(f"{number:.6g}")


def key_of(row: Row) -> Key:
    """Return the key of a saved row."""
    return tuple(row[name] for name in KEY)


def run(job: Job) -> Row:
    """Train, and return the row to save."""
    from .train import train

    work = WORKLOADS[job.network]
    return job.about | train(work, job.method, job.ranks, job.learning_rate, job.seed)


def jobs() -> list[Job]:
    """Return all jobs of the roster; the seeds of a row one after the other."""
    rows = [*_at_own_rates(), *_at_double()]
    return [job._replace(seed=seed) for job in dict.fromkeys(rows) for seed in SEEDS]


def rate_jobs() -> list[Job]:
    """Return the dense jobs that choose the learning rates."""
    return [
        Job(name, DENSE, 1, rate, seed)
        for seed in SEEDS
        for name, work in WORKLOADS.items()
        for rate in work.learning_rates
    ]


def _at_own_rates() -> Iterator[Job]:
    """Yield the jobs at the multiples of the dense learning rate."""
    for name, spec in ROSTER.items():
        for network in _networks(name):
            work = WORKLOADS[network]
            rate, adaptive = work.learning_rate, work.optimizer == "adamw"
            for ranks in (r for r in spec.ranks if r < MANY or not adaptive):
                for multiple in spec.multiples:
                    yield Job(network, name, ranks, rounded(multiple * rate), SEEDS[0])


def _at_double() -> Iterator[Job]:
    for name, spec in ROSTER.items():
        for network in _networks(name) if spec.at_double else ():
            rate = DOUBLE * WORKLOADS[network].learning_rate
            yield Job(network, name, spec.ranks[0], rounded(rate), SEEDS[0])


def _networks(method: str) -> list[str]:
    spec = ROSTER[method]
    return [
        name
        for name, work in WORKLOADS.items()
        if work.optimizer in spec.optimizers and name in (spec.networks or WORKLOADS)
    ]
