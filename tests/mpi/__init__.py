"""Real processes under mpiexec. The programs here are started by the tests beside them."""
