"""Networks between ranks: presets, measurement and simulation."""

from typing import TYPE_CHECKING

from ..lazy_names import lazy_names

if TYPE_CHECKING:
    from ..costs import Network as Network
    from .presets import network as network
    from .simulator import ExponentialDelay as ExponentialDelay
    from .simulator import Gaussian as Gaussian
    from .simulator import Simulation as Simulation
    from .simulator import simulate as simulate

__all__ = ["ExponentialDelay", "Gaussian", "Network", "Simulation", "network", "simulate"]

# Opening a communicator needs the store alone.
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "..costs": "Network",
        ".presets": "network",
        ".simulator": "ExponentialDelay Gaussian Simulation simulate",
    },
)
