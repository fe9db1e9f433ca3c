"""The communicator: one rank among ranks, and the collectives it calls."""

from .communicator import Communicator as Communicator
