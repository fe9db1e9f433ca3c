"""`sparcml probe` without the longest vectors, which take most of its time."""

from unittest.mock import patch

from sparcml.cli import main
from sparcml.network import probe_algorithms

if __name__ == "__main__":
    with patch.object(probe_algorithms, "POINTS", probe_algorithms.POINTS[:6]):
        main()
