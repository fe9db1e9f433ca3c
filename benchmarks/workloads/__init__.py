"""Small real training runs on 8 ranks: what methods of compression are judged by."""

from . import fashion_mnist, spam
from .data import folder as folder
from .train import Run as Run
from .train import Workload as Workload
from .train import train as train

WORKLOADS = {"spam": spam.WORKLOAD, "fashion-mnist": fashion_mnist.WORKLOAD}
