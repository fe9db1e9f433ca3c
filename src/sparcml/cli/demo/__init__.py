"""The demonstration of `sparcml demo`."""
