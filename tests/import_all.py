"""Import every module of the installed package, and add up vectors on two ranks.

It runs without pytest, on an installation that may lack the optional packages: modules that need
one of them are left out, and named by it.
"""

import pkgutil
from collections import Counter
from importlib import import_module
from importlib.util import find_spec

import sparcml

OPTIONAL = ("torch", "mpi4py", "scipy", "sklearn", "matplotlib", "networkx", "zstandard")


def import_all() -> None:
    """Import every module; one that fails for another reason than a missing package raises."""
    missing = {name for name in OPTIONAL if find_spec(name) is None}
    imported, left_out = 0, Counter[str]()
    for module in pkgutil.walk_packages(sparcml.__path__, "sparcml."):
        if module.name == "sparcml.__main__":  # runs the command line
            continue
        try:
            import_module(module.name)
            imported += 1
        except ImportError as error:
            package = (error.name or "").partition(".")[0]
            if package not in missing:
                raise
            left_out[package] += 1
    print(f"  {imported} modules imported, in {sparcml.__path__[0]}")
    for package, count in left_out.items():
        print(f"  left out, for want of {package}: {count}")


def add_up() -> None:
    """Check a sum on two threads; the calls after the first take the compiled way."""

    def work(comm: sparcml.Communicator) -> list[list[float]]:
        x = sparcml.Stream(1000, [comm.rank, 500], [1.0, 0.25])
        return [
            y.to_dense()[[0, 1, 500]].tolist() for y in (comm.allreduce(x) for _ in "123")
        ]

    expected = [[1.0, 1.0, 0.5]] * 3
    results = sparcml.launch(work, ranks=2)
    assert results == [expected] * 2, results
    print("  the sum of two ranks is right")


if __name__ == "__main__":
    import_all()
    add_up()
