"""Experiments behind docs/decentralized.md, one file each."""
