"""Allreduce algorithms for sparse streams."""
