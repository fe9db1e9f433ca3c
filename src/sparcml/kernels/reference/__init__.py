"""NumPy definitions of the kernels: what the tests compare with."""
