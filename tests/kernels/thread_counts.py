"""The same work on several numbers of threads."""

import numpy as np

from sparcml import kernels
from sparcml.kernels.threads import using_threads

THREADS = (1, 2, 3, 5)


def on_all(work):
    """Return the results with 1, 2, 3 and 5 threads."""
    results = []
    for count in THREADS:
        with using_threads(count):
            assert kernels.threads() == count
            results.append(work())
    return results


def assert_equal(results):
    for other in results[1:]:
        for x, y in zip(other, results[0], strict=True):
            np.testing.assert_array_equal(x, y)
