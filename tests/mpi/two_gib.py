"""A message of more than 2 GiB between two ranks: started by test_laws.py."""

import numpy as np

import sparcml

with sparcml.world() as comm:
    transport = comm._transport
    if comm.rank == 0:
        message = np.zeros(2**31 + 17, np.uint8)
        message[[2**30, 2**31, -1]] = 1, 2, 3
        transport.send(1, message)
    else:
        got = transport.receive(0)
        assert np.flatnonzero(got[2**30 :]).tolist() == [0, 2**30, 2**30 + 16]
        assert got[[2**30, 2**31, -1]].tolist() == [1, 2, 3]
        print(f"{len(got)} bytes arrived")
