"""Table 2 of the paper, and the lower bounds of its links."""

from __future__ import annotations

from dataclasses import dataclass

from sparcml.costs import ring_nbytes

BATCH = 1000  # rows of a rank in a step


@dataclass(frozen=True)
class Published:
    """One row: seconds per epoch over all data, and those of communication.

    Attributes:
        system: Name of the cluster.
        network: Our preset for its links.
        ranks: Number of nodes.
        algorithm: Sparse allreduce algorithm.
        data: URL or Webspam.
        loss: logistic (LR) or hinge (SVM).
        dense: With MPI's dense allreduce: (total, communication).
        sparse: With sparse allreduce: (total, communication).
        ratio: As printed: (total, communication).
    """

    system: str
    network: str
    ranks: int
    algorithm: str
    data: str
    loss: str
    dense: tuple[float, float]
    sparse: tuple[float, float]
    ratio: tuple[float, float]

    @property
    def steps(self) -> float:
        """Steps per epoch."""
        return ROWS[self.data] / (BATCH * self.ranks)

    @property
    def above_bound(self) -> float:
        """Time of the dense allreduces, relative to their bytes at link bandwidth."""
        bound = dense_bytes(FEATURES[self.data], self.ranks) * SECONDS_A_BYTE[self.network]
        return self.dense[1] / self.steps / bound


ROWS = {"URL": 2_396_130, "Webspam": 350_000}
FEATURES = {"URL": 3_231_961, "Webspam": 16_609_143}
SECONDS_A_BYTE = {"gige": 8 / 1e9, "ib-fdr": 8 / 54.5e9, "aries": 8 / 80e9}

RECDBL, SPLIT = "ssar_recursive_double", "ssar_split_allgather"
DAINT_32 = ("Piz Daint", "aries", 32, RECDBL)
DAINT_8 = ("Piz Daint", "aries", 8, SPLIT)
GREINA_IB = ("Greina, InfiniBand", "ib-fdr", 8, SPLIT)
GREINA_GIGE = ("Greina, GigE", "gige", 8, SPLIT)
LR, SVM = "logistic", "hinge"

# fmt: off
TABLE = (
    Published(*DAINT_32, "Webspam", LR, (24.0, 21.6), (6.8, 2.6), (3.53, 6.17)),
    Published(*DAINT_32, "Webspam", SVM, (16.2, 14.2), (6.5, 4.4), (2.49, 3.23)),
    Published(*DAINT_32, "URL", LR, (26.4, 25.8), (7.5, 7.0), (3.52, 3.69)),
    Published(*DAINT_32, "URL", SVM, (19.8, 19.3), (5.6, 5.3), (3.54, 3.64)),
    Published(*DAINT_8, "Webspam", LR, (46.7, 37.9), (25.6, 15.8), (1.82, 2.40)),
    Published(*DAINT_8, "URL", LR, (37.7, 35.3), (20.9, 15.0), (1.80, 2.35)),
    Published(*GREINA_IB, "Webspam", LR, (65.2, 46.7), (36.3, 19.0), (1.80, 2.46)),
    Published(*GREINA_IB, "URL", LR, (81.4, 44.7), (61.1, 24.9), (1.33, 1.80)),
    Published(*GREINA_GIGE, "Webspam", LR, (768.0, 759.5), (37.9, 29.5), (20.26, 25.75)),
    Published(*GREINA_GIGE, "URL", LR, (1045.0, 1004.6), (80.26, 42.2), (12.65, 23.81)),
)
# fmt: on


def dense_bytes(features: int, ranks: int) -> float:
    """Return the bytes that a rank sends, and receives, in the best dense allreduce."""
    return ring_nbytes(ranks, features * 4)
