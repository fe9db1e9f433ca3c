"""Rank 0 counts what the others pour into it, and the seconds: started by test_emulate.py.

usage: pour.py ADDRESS SENDERS BYTES
"""

import os
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor

PORT = 4000


def receive(senders):
    with socket.create_server(("", PORT)) as server:
        connections = [server.accept()[0] for _ in range(senders)]
        begun = time.monotonic()
        for connection in connections:  # nothing is on its way before
            connection.sendall(b"!")
        with ThreadPoolExecutor(senders) as pool:
            arrived = sum(pool.map(count, connections))
        print(arrived, time.monotonic() - begun)


def count(connection):
    total = 0
    with connection:
        while data := connection.recv(1 << 16):
            total += len(data)
    return total


def send(address, amount):
    deadline = time.monotonic() + 20
    while True:
        try:
            connection = socket.create_connection((address, PORT), timeout=20)
            break
        except ConnectionRefusedError:  # not there yet
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
    with connection:
        connection.recv(1)
        connection.sendall(bytes(amount))


address, senders, amount = sys.argv[1:]
if os.environ["R"] == "0":
    receive(int(senders))
else:
    send(address, int(amount))
