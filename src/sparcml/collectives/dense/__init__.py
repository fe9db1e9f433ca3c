"""Allreduce algorithms for dense vectors."""
