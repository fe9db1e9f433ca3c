"""Solvers of linear models: SGD and SCD, their states, objectives and learning rates."""
