"""Start ranks, watch them, and report how they ended."""
