"""Network namespaces of the kernel: created by one process, entered by others.

It is started by its path and imports neither sparcml nor NumPy, because a process with
several threads may not enter a user namespace. The namespaces have no names: the kernel
removes a namespace and its links with its last process and its last open file.
"""

import contextlib
import ctypes
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

FIRST_FILE = 100  # during creation, namespace i is open as file FIRST_FILE + i

_NEW_MOUNTS = 0x00020000
_NEW_NAME = 0x04000000
_NEW_USER = 0x10000000
_NEW_NETWORK = 0x40000000
_BIND = 0x1000
_SLAVE_OF_ALL = 0x80000 | 0x4000  # MS_SLAVE, MS_REC
_DETACH = 2
_SAME_FLAGS = 0b1111  # MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC

_NOT_PERMITTED = (
    "not permitted to create network namespaces ({error}); run as root (in a container: "
    "with --privileged), or permit users: set sysctl user.max_user_namespaces and "
    "user.max_net_namespaces above 0, on Ubuntu "
    "kernel.apparmor_restrict_unprivileged_userns=0"
)


def make(commands: list[list[tuple[list[str], str]]], connection: socket.socket) -> None:
    """Create one namespace per list of commands, and run the commands in it.

    Args:
        commands: For each namespace, commands and their standard input.
        connection: Receives the open files of the namespaces, in order, and that of the
            user namespace that owns them, if there is one.
    """
    try:
        owner = _become_permitted()
        for number, _ in enumerate(commands, FIRST_FILE):
            _call("unshare", _NEW_NETWORK)
            file = os.open("/proc/self/ns/net", os.O_RDONLY)
            os.dup2(file, number)
            os.close(file)
    except OSError as error:
        sys.exit(_NOT_PERMITTED.format(error=error.strerror))
    files = range(FIRST_FILE, FIRST_FILE + len(commands))
    for file, of_namespace in zip(files, commands, strict=True):
        _call("setns", file, _NEW_NETWORK)
        for command, text in of_namespace:
            _run(command, text, files)
    socket.send_fds(connection, [b"\0"], [*files, *owner])


def _become_permitted() -> list[int]:
    """Enter a user namespace if this user may not create network namespaces."""
    try:
        _call("unshare", _NEW_NETWORK)
    except PermissionError:
        _enter_user_namespace(0, 0)
        return [os.open("/proc/self/ns/user", os.O_RDONLY)]
    return []


def _run(command: list[str], text: str, files: range) -> None:
    done = subprocess.run(
        command, input=text, text=True, capture_output=True, pass_fds=files, check=False
    )
    if done.returncode:
        error = (done.stderr.splitlines() or [f"code {done.returncode}"])[0]
        sys.exit(f"{Path(command[0]).name} failed: {error}")


def enter(network: str, owner: str, hosts: str, name: str, command: list[str]) -> None:
    """Replace this process by a command that appears to run on a machine of its own.

    Args:
        network: File of the network namespace.
        owner: File of the user namespace that owns it, or empty.
        hosts: Text of /etc/hosts.
        name: Host name.
        command: Command, run as the current user.
    """
    user, group = os.geteuid(), os.getegid()
    files = [(os.open(network, os.O_RDONLY), _NEW_NETWORK)]
    if owner:  # entered first, for the permission to enter the other
        files.insert(0, (os.open(owner, os.O_RDONLY), _NEW_USER))
    for file, flag in files:
        _call("setns", file, flag)
        os.close(file)
    with contextlib.suppress(OSError):  # not permitted in some containers
        _isolate(hosts, name)
    if owner:
        _enter_user_namespace(user, group)
    os.execv(command[0], command)


def _isolate(hosts: str, name: str) -> None:
    """Set host name, /etc/hosts, and a /sys with the own links only, which UCX reads."""
    _call("unshare", _NEW_NAME | _NEW_MOUNTS)
    socket.sethostname(name)
    _mount("none", "/", "", _SLAVE_OF_ALL)  # the mounts below are not seen outside
    flags = os.statvfs("/sys").f_flag & _SAME_FLAGS
    # The file lives in a temporary file system, so that it disappears with the mount.
    _mount("none", "/sys", "tmpfs", 0)
    try:
        Path("/sys/hosts").write_text(hosts)
        _mount("/sys/hosts", "/etc/hosts", "", _BIND)
    finally:
        _call("umount2", b"/sys", _DETACH)
        _mount("sysfs", "/sys", "sysfs", flags)


def _mount(source: str, target: str, file_system: str, flags: int) -> None:
    names = [text.encode() for text in (source, target, file_system)]
    _call("mount", *names, ctypes.c_ulong(flags), None)


def _enter_user_namespace(user: int, group: int) -> None:
    """Enter a new user namespace, in which this process has these ids."""
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
    """Run `make SOCKET` with commands as JSON on stdin, or `enter PLACES COMMAND...`.

    The first environment variable of the places that is set has the rank.
    """
    if sys.argv[1] == "make":
        make(json.load(sys.stdin), socket.socket(fileno=int(sys.argv[2])))
        return
    places = json.loads(sys.argv[2])
    set_variables = [name for name in places["variables"] if name in os.environ]
    rank = int(os.environ[set_variables[0]])
    network, name = places["networks"][rank], places["names"][rank]
    enter(network, places["owner"], places["hosts"], name, sys.argv[3:])


if __name__ == "__main__":
    main()
