"""Forms of local training for PyTorch: one class for each method of `sparcml.local`."""

from __future__ import annotations

from .. import local
from .local_training import LocalTraining


class LocalSGD(LocalTraining):
    """Model averaging, see `sparcml.local.LocalSGD` and `LocalTraining`."""

    form = local.LocalSGD


class BMUF(LocalTraining):
    """Blockwise model-update filtering, see `sparcml.local.BMUF` and `LocalTraining`."""

    form = local.BMUF


class DiLoCo(LocalTraining):
    """DiLoCo and Streaming DiLoCo, see `sparcml.local.DiLoCo` and `LocalTraining`."""

    form = local.DiLoCo


class SparseLoCo(LocalTraining):
    """SparseLoCo, see `sparcml.local.SparseLoCo` and `LocalTraining`."""

    form = local.SparseLoCo


class DeMo(LocalTraining):
    """DeMo, see `sparcml.local.DeMo` and `LocalTraining`.

    Without `outer_lr`, the length of its step is the learning rate of the optimizer.
    """

    form = local.DeMo


class SPARTA(LocalTraining):
    """SPARTA, see `sparcml.local.SPARTA` and `LocalTraining`."""

    form = local.SPARTA
