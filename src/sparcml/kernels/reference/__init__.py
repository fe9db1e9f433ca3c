"""NumPy definitions of the kernels: what the tests compare with."""
"""What every kernel computes, in NumPy: the definition, and the oracle of the tests."""
