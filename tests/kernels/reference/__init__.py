"""NumPy definitions of the kernels, which the tests compare the compiled loops with."""
