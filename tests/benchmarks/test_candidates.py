"""Published methods that are only measured: the properties of their definitions."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from accuracy.candidates import EF21, GMC, DeMo, Dion, LoCo, _cosine
from accuracy.roster import Setting
from accuracy.workloads import WORKLOADS

LR, STEPS = 0.1, 12


def gradients(ranks, seed=0, shape=(48, 40)):
    rng = np.random.default_rng(seed)
    shapes = {"w": shape, "b": (3,)}
    for _ in range(STEPS):
        yield [
            {n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
            for _ in range(ranks)
        ]


def made(kind, ranks=2, **settings):
    candidate = kind(Setting(WORKLOADS["moby-dick"], ranks, 0, LR))
    vars(candidate).update(settings)
    return candidate


def heavy_ball(ranks, *, first):
    """Yield the updates of momentum 0.9; the first velocity is `first` times the gradient."""
    velocity = None
    for own in gradients(ranks):
        mean = {n: np.mean([g[n] for g in own], axis=0) for n in own[0]}
        if velocity is None:
            velocity = {n: first * g for n, g in mean.items()}
        else:
            velocity = {n: 0.9 * velocity[n] + g for n, g in mean.items()}
        yield {n: LR * v for n, v in velocity.items()}


@pytest.mark.parametrize(("kind", "first"), [(GMC, 1), (EF21, 10)])
def test_sending_everything_gives_heavy_ball(kind, first):
    candidate = made(kind, ratio=1.0)
    for own, expected in zip(gradients(2), heavy_ball(2, first=first), strict=True):
        update = candidate.aggregate(own, LR)
        for name, values in expected.items():
            np.testing.assert_allclose(update[name], values, rtol=2e-4, atol=2e-5)


def test_gmc_loses_nothing():
    candidate = made(GMC)
    sent: Any = 0
    given: Any = 0
    last: Any = 0
    for own in gradients(2):
        given = given + np.stack([g["w"] for g in own]) + np.float32(0.9) * last
        last = candidate.aggregate(own, 1.0)["w"]
        sent = sent + last
    residual = candidate.state("residual", "w", given)
    np.testing.assert_allclose(sent + residual.mean(axis=0), given.mean(axis=0), atol=1e-4)


@pytest.mark.parametrize("share", [1.0, 0.2])
def test_locos_errors_add_up(share):
    candidate = made(LoCo, share=np.float32(share))
    sent = given = 0
    for own in gradients(2):
        given = given + np.mean([g["w"] for g in own], axis=0)
        sent = sent + candidate.aggregate(own, LR)["w"]
    error = candidate.state("error", "w", np.zeros((2, 48, 40), np.float32))
    np.testing.assert_allclose(sent + error.mean(axis=0) / share, given, atol=1e-4)
    assert np.abs(error).max() > 0
    assert candidate.bytes_sent == pytest.approx(STEPS * (8 * 256 / 2 + 4 * 8 + 12))


def test_the_cosine_transform_is_orthonormal():
    tiles = np.random.default_rng(0).standard_normal((2, 1, 3, 16, 16)).astype(np.float32)
    there = _cosine(tiles)
    np.testing.assert_allclose(_cosine(there, back=True), tiles, atol=1e-5)
    assert np.linalg.norm(there) == pytest.approx(np.linalg.norm(tiles), rel=1e-5)
    assert np.abs(there - tiles).max() > 0.1


def test_demo_with_all_coefficients_on_one_rank_is_signsgd():
    candidate = made(DeMo, ranks=1, k=64 * 64)
    for own in gradients(1, shape=(64, 128)):
        np.testing.assert_array_equal(
            candidate.aggregate(own, LR)["w"], np.float32(LR) * np.sign(own[0]["w"])
        )


def test_the_updates_of_dion_are_orthonormal():
    candidate = made(Dion, rank=8)
    for own in gradients(2):
        update = candidate.aggregate(own, LR)["w"] / (LR * np.sqrt(48 / 40))
        singular = np.linalg.svd(update, compute_uv=False)
        # One factor is orthonormal, the columns of the other have length 1.
        assert (singular[8:] < 1e-5).all()
        assert (singular[:8] ** 2).sum() == pytest.approx(8, rel=1e-4)
    assert candidate.bytes_sent == STEPS * (4 * 8 * 88 + 12)
