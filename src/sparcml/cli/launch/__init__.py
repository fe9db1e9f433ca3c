"""Launched jobs: starting ranks, filtering their output, and reporting how they end."""
