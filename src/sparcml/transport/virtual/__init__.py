"""The transport of the simulator: virtual clock, links and channels."""
