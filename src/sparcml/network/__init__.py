"""What a network costs: probe it, model it, emulate it, simulate it, plan for it."""

from ..costs import Network as Network
from .presets import network as network
from .simulator import Simulation as Simulation
from .simulator import simulate as simulate
from .stragglers import ExponentialDelay as ExponentialDelay
from .stragglers import Gaussian as Gaussian
