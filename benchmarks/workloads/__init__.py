"""Small training runs on 8 ranks, with real data, for comparing compression methods."""

from . import fashion_mnist, spam
from .data import folder as folder
from .train import Run as Run
from .train import Workload as Workload
from .train import train as train

WORKLOADS = {"spam": spam.WORKLOAD, "fashion-mnist": fashion_mnist.WORKLOAD}
