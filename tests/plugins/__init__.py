"""Plug-ins outside the package: one of each family, one file each."""
