"""Prints who two ranks are, and their rights: started by test_emulate.py without any."""

import os
import subprocess

from sparcml.cli.launch.emulate import EmulatedCluster

LINE = "id -u; sed -n 's/^CapEff:.//p' /proc/self/status"

with EmulatedCluster(2, 10**9) as cluster:
    for rank in ("0", "1"):
        command = [*cluster.prefix(["R"]), "/bin/sh", "-c", LINE]
        subprocess.run(command, env=os.environ | {"R": rank}, check=True)
