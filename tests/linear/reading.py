"""A program for MPI ranks: reads a file, twice through the cache, then a malformed one."""

import sys

import sparcml
from sparcml.linear import DataError, read_svmlight

good, bad = sys.argv[1:]
lines = ""
with sparcml.world() as comm:
    for cache in (None, "beside", "beside"):
        part = read_svmlight(good, comm, cache=cache)
        total = comm.allreduce(part.labels.sum(keepdims=True))[0]
        lines += f"{cache} {part.first} {part.total} {part.features} {total}\n"
    try:
        read_svmlight(bad, comm)
    except DataError as error:
        lines += f"refused {error}\n"
sys.stdout.write(lines)  # in one piece, or ranks' lines mix
