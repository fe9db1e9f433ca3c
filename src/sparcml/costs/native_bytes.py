"""Bytes of the engine's own allreduce, computed from its algorithm.

Engines do not report what they send. `comm.stats`, `comm.explain` and `auto` therefore use the
bytes that follow from the engine's algorithm, for a vector of n bytes on P ranks:

- "ring": gloo, and the assumption for other engines. Every rank sends 2 (P - 1) / P n.
- "mpich": MPI_Iallreduce of MPICH. With p the largest power of two up to P, p ranks send n in each
  of log2(p) rounds of recursive doubling if n is at most 2 kB, and 2 (p - 1) / p n otherwise, by
  recursive halving and doubling. Each of the other P - p ranks sends n to one of them and receives
  the result from it.

Two ranks send n in any case. `tests/network/test_native_bytes.py` compares these with what network
interfaces count.

Reference: Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
MPICH, IJHPCA 2005.
"""

from __future__ import annotations

from .workload import ring_nbytes

SHORT_BYTES = 2048  # longest vector that MPICH reduces by recursive doubling


def native_nbytes(algorithm: str, rank: int, ranks: int, nbytes: float) -> float:
    """Return the bytes that a rank sends in the engine's own allreduce.

    Args:
        algorithm: "ring" or "mpich", see `Nodes.native_algorithm`.
        rank: The rank.
        ranks: World size.
        nbytes: Bytes of the vector.
    """
    if algorithm == "ring" or ranks == 1:
        return ring_nbytes(ranks, nbytes)
    rounds = ranks.bit_length() - 1
    power = 1 << rounds
    is_paired = rank < 2 * (ranks - power)
    if is_paired and rank % 2 == 0:
        return nbytes
    own = rounds * nbytes if nbytes <= SHORT_BYTES else ring_nbytes(power, nbytes)
    return own + is_paired * nbytes
