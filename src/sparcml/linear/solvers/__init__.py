"""Solvers of linear models: stochastic gradient descent and coordinate descent."""
