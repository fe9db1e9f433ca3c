"""Allreduce algorithms for sparse vectors."""
