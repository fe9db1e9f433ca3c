"""Transport of the simulator: virtual clock, links and channels."""
