"""Namespaces of the kernel: made by one process, entered by others.

Started by its path, so that it imports neither sparcml nor NumPy: a process with several
threads may not enter a user namespace. Nothing here has a name. The kernel removes a
namespace, and the links in it, with the last process and the last open file of it.
"""

import contextlib
import ctypes
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

FIRST_FILE = 100  # while they are made, namespace i is open as the file FIRST_FILE + i

_NEW_MOUNTS = 0x00020000
_NEW_NAME = 0x04000000
_NEW_USER = 0x10000000
_NEW_NETWORK = 0x40000000
_BIND = 0x1000
_SLAVE_OF_ALL = 0x80000 | 0x4000  # MS_SLAVE, MS_REC
_DETACH = 2
_SAME_FLAGS = 0b1111  # MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC

_NO_RIGHT = (
    "may not make network namespaces ({error}); run it as root (of a container: with "
    "--privileged), or let users make them: sysctl user.max_user_namespaces and "
    "user.max_net_namespaces above 0, on Ubuntu "
    "kernel.apparmor_restrict_unprivileged_userns=0"
)


def make(steps: list[list[tuple[list[str], str]]], channel: socket.socket) -> None:
    """Make a namespace for each list of commands, and run these inside.

    Args:
        steps: For each namespace, commands and what they read from their input.
        channel: Where to send the files that keep the namespaces: these in their order,
            then the user namespace that they belong to, if there is one.
    """
    try:
        owner = _get_right()
        for number, _ in enumerate(steps, FIRST_FILE):
            _call("unshare", _NEW_NETWORK)
            file = os.open("/proc/self/ns/net", os.O_RDONLY)
            os.dup2(file, number)
            os.close(file)
    except OSError as error:
        sys.exit(_NO_RIGHT.format(error=error.strerror))
    files = range(FIRST_FILE, FIRST_FILE + len(steps))
    for file, commands in zip(files, steps, strict=True):
        _call("setns", file, _NEW_NETWORK)
        for command, text in commands:
            _run(command, text, files)
    socket.send_fds(channel, [b"\0"], [*files, *owner])


def _get_right() -> list[int]:
    """Be allowed to make namespaces: as we are, else in a user namespace of our own."""
    try:
        _call("unshare", _NEW_NETWORK)
    except PermissionError:
        _be_user(0, 0)
        return [os.open("/proc/self/ns/user", os.O_RDONLY)]
    return []


def _run(command: list[str], text: str, files: range) -> None:
    done = subprocess.run(
        command, input=text, text=True, capture_output=True, pass_fds=files, check=False
    )
    if done.returncode:
        said = (done.stderr.splitlines() or [f"code {done.returncode}"])[0]
        sys.exit(f"{Path(command[0]).name} failed: {said}")


def enter(network: str, owner: str, hosts: str, name: str, command: list[str]) -> None:
    """Become a command on a machine of its own, as far as it can see.

    Args:
        network: A file of the network namespace.
        owner: A file of the user namespace that it belongs to, or nothing.
        hosts: What /etc/hosts shall say.
        name: What the machine is called.
        command: What to run there, as the user we are here.
    """
    user, group = os.geteuid(), os.getegid()
    files = [(os.open(network, os.O_RDONLY), _NEW_NETWORK)]
    if owner:  # the right to enter the other
        files.insert(0, (os.open(owner, os.O_RDONLY), _NEW_USER))
    for file, kind in files:
        _call("setns", file, kind)
        os.close(file)
    with contextlib.suppress(OSError):  # in some containers this is out of reach
        _look_alone(hosts, name)
    if owner:
        _be_user(user, group)
    os.execv(command[0], command)


def _look_alone(hosts: str, name: str) -> None:
    """Have a name, names of the others, and /sys list our own links: UCX looks there."""
    _call("unshare", _NEW_NAME | _NEW_MOUNTS)
    socket.sethostname(name)
    _mount("none", "/", "", _SLAVE_OF_ALL)  # nothing of what follows is seen outside
    flags = os.statvfs("/sys").f_flag & _SAME_FLAGS
    # A file in nobody's folder: nobody has to remove it.
    _mount("none", "/sys", "tmpfs", 0)
    try:
        Path("/sys/hosts").write_text(hosts)
        _mount("/sys/hosts", "/etc/hosts", "", _BIND)
    finally:
        _call("umount2", b"/sys", _DETACH)
        _mount("sysfs", "/sys", "sysfs", flags)


def _mount(source: str, place: str, kind: str, flags: int) -> None:
    names = [text.encode() for text in (source, place, kind)]
    _call("mount", *names, ctypes.c_ulong(flags), None)


def _be_user(user: int, group: int) -> None:
    """Enter a new user namespace, in which we bear these numbers."""
    maps = {
        "setgroups": "deny",
        "uid_map": f"{user} {os.geteuid()} 1",
        "gid_map": f"{group} {os.getegid()} 1",
    }
    _call("unshare", _NEW_USER)
    for name, text in maps.items():
        Path("/proc/self", name).write_text(text)


def _call(name: str, *arguments: int | bytes | ctypes.c_ulong | None) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)


def main() -> None:
    """`make SOCKET` with the steps as JSON on stdin, or `enter PLACES COMMAND...`.

    Among the places the rank chooses its own: the value of the first variable that is set.
    """
    if sys.argv[1] == "make":
        make(json.load(sys.stdin), socket.socket(fileno=int(sys.argv[2])))
        return
    places = json.loads(sys.argv[2])
    told = [os.environ[name] for name in places["variables"] if name in os.environ]
    rank = int(told[0])
    network, name = places["networks"][rank], places["names"][rank]
    enter(network, places["owner"], places["hosts"], name, sys.argv[3:])


if __name__ == "__main__":
    main()
