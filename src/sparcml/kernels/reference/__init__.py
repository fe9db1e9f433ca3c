"""What every kernel computes, in NumPy: the definition, and the oracle of the tests."""
