"""Plug-ins outside the package: one of each family, and tests of those in `examples`."""
