"""Long vectors in two passes over memory: the same bits and messages as one loop at a time."""

import numpy as np
import pytest

import sparcml
from sparcml.aggregate import pieces

PIECE = 512
SIZE = 5 * PIECE + 100
BITS = [sparcml.QSGD(bits=4), sparcml.QSGD(bits=2, bucket=64, norm="l2"), sparcml.QSGD()]


def gradients(rank, step, share):
    """A vector of which a share is zero, and -0.0."""
    rng = np.random.default_rng((rank, step))
    values = rng.standard_normal(SIZE).astype(np.float32)
    values[rng.random(SIZE) < share] = 0
    values[::50] = -0.0
    return values


def train(comm, method, share, *, reuses):
    """Return means, residuals and the bytes of each step."""
    found = []
    state = method.init({"w": (SIZE, 1)})
    for step in range(4):
        rate = 0.1 / (1 + step)
        part = share if comm.rank else 0.0  # one rank may send another format
        given = {"w": gradients(comm.rank, step, part).reshape(-1, 1)}
        before = comm.stats.bytes
        mean, state = method.aggregate(
            comm, given, state, lr=rate, overwrite=reuses, overwrite_state=reuses
        )
        residual = state.get("residual/w", np.zeros(0, np.float32))
        found.append((mean["w"].copy(), residual.copy(), comm.stats.bytes - before))
    return found


@pytest.mark.parametrize("quantize", BITS, ids=str)
@pytest.mark.parametrize("feedback", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.97, 1.0])
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_two_passes_change_no_bit(monkeypatch, quantize, feedback, share, ranks):
    monkeypatch.setattr(pieces, "PIECE", PIECE)
    made = []
    two_passes = pieces.mean_in_two_passes

    def counted(*arguments):
        made.append(1)
        return two_passes(*arguments)

    monkeypatch.setattr("sparcml.aggregate.compressed.mean_in_two_passes", counted)
    method = sparcml.Compressed(
        quantize=quantize,
        error_feedback=feedback,
        algorithm="ssar_allgather",
        dense_below=100,
    )

    def work(comm):
        other = comm.duplicate()
        other._session.use_python()
        defined = train(other, method, share, reuses=False)
        assert not (comm.rank == 0 and made)
        comm.barrier()
        return [defined, *(train(comm, method, share, reuses=r) for r in (False, True))]

    for defined, *others in sparcml.launch(work, ranks):
        for found in others:
            for (mean, residual, sent), (*wanted, bytes_sent) in zip(
                found, defined, strict=True
            ):
                np.testing.assert_array_equal(
                    mean.view(np.uint32), wanted[0].view(np.uint32)
                )
                np.testing.assert_array_equal(
                    residual.view(np.uint32), wanted[1].view(np.uint32)
                )
                assert sent == bytes_sent
    assert made


@pytest.mark.parametrize("feedback", [False, True])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(monkeypatch, feedback, value):
    monkeypatch.setattr(pieces, "PIECE", PIECE)
    method = sparcml.Compressed(
        quantize=sparcml.QSGD(bits=4),
        error_feedback=feedback,
        algorithm="ssar_allgather",
        dense_below=100,
    )

    def work(comm):
        state = method.init({"w": (SIZE, 1)})
        given = gradients(comm.rank, 0, 0.0)
        if comm.rank == 1:
            given[3 * PIECE + 7] = value
        method.aggregate(comm, {"w": given.reshape(-1, 1)}, state)

    with pytest.raises(
        ValueError, match=f"rank 1: the gradient of 'w' has 1 .* index {3 * PIECE + 7}"
    ):
        sparcml.launch(work, 2)
