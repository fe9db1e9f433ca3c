"""Print the network that each rank reckons with, where their environments differ."""

import os
import sys

import sparcml

rank = int(os.environ["PMI_RANK"])
told = sys.argv[1:]
if told:
    os.environ["SPARCML_NETWORK"] = told[rank]
try:
    with sparcml.world() as comm:
        sys.stdout.write(f"{comm.network}\n")  # at once: others print, too
except ValueError as error:
    sys.stdout.write(f"{error}\n")
