"""RelaySum: exact sums over a tree, relayed from neighbour to neighbour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..base import Method
from ..requirements import require_tree
from ..state import key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...communicator.communicator import Communicator
    from ...stream.arrays import Values
    from ..state import State
    from ..step import Step

RECEIVED = "received"  # last message of each neighbour: the relayed sum, then its count


@dataclass(frozen=True)
class RelaySum(Method):
    """RelaySGD on a tree.

        h_i = x_i - lr g_i(x_i)
        m_(i->j) = h_i + sum_(k != j) m_(k->i)                 of the last step, sent to j
        x_i <- ((n - c) h_i + sum_j m_(j->i)) / n              c: number of models in the messages

    A message holds the sum of all models on its side of the edge, each as old as it is far away.
    After as many steps as the tree's diameter every rank averages the models of all ranks with
    equal weights, so different data per rank cause no bias. Messages have the size of the model.

    Distant models arrive late, so ranks hold means of different times. The mean of x is kept
    exactly only while all ranks hold the same model; therefore `average_start`. In the long run
    the models agree, and their fixed point is the optimum of the mean loss.

    State: `received/<rank>`, the last message of each neighbour. A change of topology or world
    size drops the messages, and the next step averages the models of all ranks first, which
    keeps the mean.

    Reference: Vogels, He, Koloskova, Karimireddy, Lin, Stich, Jaggi: RelaySum for Decentralized
    Deep Learning on Heterogeneous Data, NeurIPS 2021.

    Args:
        topology: A tree; its weights are not used.
        average_start: Whether to average the models of all ranks, in one allreduce, if there are
            no messages yet and the models differ. Without it, as in the paper, steps without
            gradients move the mean of different models.
    """

    name: ClassVar[str] = "relay_sum"
    number: ClassVar[int] = 8
    keeps_mean: ClassVar[bool] = False

    average_start: bool = True

    def _check_topology(self) -> None:
        require_tree(self, self.topology)

    def _step(self, call: Step, x: Values, g: Values, state: State) -> tuple[Values, State]:
        received = {
            j: state[key(RECEIVED, j)] for j in call.neighbors if key(RECEIVED, j) in state
        }
        if not received and self.average_start and not call.is_equal_everywhere(x):
            x = np.array(call.comm.allreduce(x, op="mean"))
        h = call.descend(x, g)
        received = relay(call.comm, call.neighbors, h, received)
        n = call.comm.size
        total = sum((m.astype(np.float64) for m in received.values()), np.zeros(x.size + 1))
        averaged = ((n - total[-1]) * h + total[:-1]) / n
        new = {**state, **{key(RECEIVED, j): m for j, m in received.items()}}
        return averaged.astype(x.dtype), new


def relay(
    comm: Communicator, neighbors: list[int], x: Values, received: Mapping[int, Values]
) -> dict[int, Values]:
    """Send each neighbour this rank's vector plus what the other neighbours sent. Collective.

    Args:
        comm: The communicator.
        neighbors: Neighbours of this rank in a tree.
        x: Vector of this rank.
        received: Last messages of the neighbours; empty in the first round.

    Returns:
        New messages of the neighbours: a sum of vectors, and last the number of its terms.
    """
    own = np.append(x, x.dtype.type(1))
    messages = {}
    for j in neighbors:
        others = (
            received[k].astype(np.float64) for k in neighbors if k != j and k in received
        )
        messages[j] = sum(others, own.astype(np.float64)).astype(x.dtype)
    return dict(comm.neighbor_exchange(messages, neighbors, neighbors))
