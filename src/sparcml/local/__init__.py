"""Local training: ranks make many steps on their own and exchange the change of the model.

A method such as `DiLoCo(sync_every=30)` is called after each step of an optimizer on an array, or
on a mapping from names to arrays; most calls only count:

    state = method.init(x)
    x = x - lr * gradient(x)
    x, state = method.step(comm, x, state)

`sparcml.torch.DiLoCo` does the same around a training loop of PyTorch.
"""

from .base import METHODS as METHODS
from .base import Method as Method
from .bmuf import BMUF as BMUF
from .demo import DeMo as DeMo
from .diloco import DiLoCo as DiLoCo
from .local_sgd import LocalSGD as LocalSGD
from .sparse_loco import SparseLoCo as SparseLoCo
from .sparta import SPARTA as SPARTA
