"""What talks, lectures and the paper claim, each answered by a file with an experiment."""

from . import (
    averaging,
    dense_family,
    dense_ring,
    fill_in,
    lower_bound,
    mean_estimation,
    one_bit,
    orderings,
    planned_rates,
    planned_resnet152,
    planned_scale,
    powersgd,
    qsgd_bounds,
    qsgd_converges,
    requantize,
    stragglers,
    strong_scaling,
    supports,
    three_questions,
    topk_converges,
)
from .base import Answer as Answer
from .base import Claim as Claim
from .base import kept as kept

CLAIMS = (
    one_bit.CLAIM,
    qsgd_bounds.CLAIM,
    qsgd_converges.CLAIM,
    mean_estimation.CLAIM,
    averaging.CLAIM,
    three_questions.CLAIM,
    topk_converges.CLAIM,
    supports.CLAIM,
    lower_bound.CLAIM,
    fill_in.CLAIM,
    orderings.CLAIM,
    dense_ring.CLAIM,
    planned_scale.CLAIM,
    planned_resnet152.CLAIM,
    strong_scaling.CLAIM,
    planned_rates.CLAIM,
    dense_family.CLAIM,
    stragglers.CLAIM,
    requantize.CLAIM,
    powersgd.CLAIM,
)
