"""Inner loops."""
