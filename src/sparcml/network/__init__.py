"""Networks between ranks: presets, measurement, emulation, simulation and planning."""

from ..costs import Network as Network
from .presets import network as network
from .simulator import Simulation as Simulation
from .simulator import simulate as simulate
from .stragglers import ExponentialDelay as ExponentialDelay
from .stragglers import Gaussian as Gaussian
