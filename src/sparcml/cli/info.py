"""`sparcml info`: installed versions, engines, networks and settings."""

import importlib
import json
import os
import platform
from typing import Annotated, Any

import typer

from sparcml.cli.launch.launcher import find_mpiexec
from sparcml.environment import package_version
from sparcml.errors import how_to_install
from sparcml.network.store import file_for, load_all
from sparcml.units import format_age

Facts = dict[str, dict[str, Any]]

# name: (value if unset, meaning)
SETTINGS = {
    "SPARCML_ISA": ("best", "instruction set of the kernels"),
    "SPARCML_TIMEOUT": ("30", "seconds to wait for a rank that is dead or stopped"),
    "SPARCML_BUSY_TIMEOUT": (
        "the engine's",
        "seconds to wait for a rank that computes",
    ),
    "SPARCML_START_TIMEOUT": ("300", "seconds to wait for all ranks at the start"),
    "SPARCML_THREADS": (
        "processors / local ranks",
        "threads of a kernel in this process",
    ),
    "SPARCML_WAIT": (
        "by ranks and processors",
        "how ranks wait: spin, yield or nap",
    ),
    "SPARCML_DEBUG": ("", "1: check that the inputs of requests stay unchanged"),
    "SPARCML_NETWORK": (
        "measured",
        "network model: a bandwidth such as 1gbit, a file, or none",
    ),
    "SPARCML_PLUGINS": ("", "modules that register plug-ins, separated by commas"),
    "SPARCML_TRACE": ("off", "file for a trace of all ranks, for Perfetto"),
}


def info(
    as_json: Annotated[bool, typer.Option("--json", help="Output as JSON.")] = False,
) -> None:
    """Show versions, instruction sets, engines and settings."""
    facts: Facts = {
        "versions": _versions(),
        "kernels": _kernels(),
        "mpi": _mpi(),
        "torch": _torch(),
        "networks": _networks(),
        "settings": _settings(),
    }
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
    else:
        _show(facts)


def _versions() -> dict[str, str | None]:
    return {
        "sparcml": package_version("sparcml"),
        "python": platform.python_version(),
        "numpy": package_version("numpy"),
    }


def _kernels() -> dict[str, Any]:
    try:
        core = importlib.import_module("sparcml.kernels._core")
        return {"active": core.isa(), "available": list(core.isas())}
    except (ImportError, ValueError) as error:
        return {"active": None, "available": [], "problem": str(error)}


def _mpi() -> dict[str, Any]:
    facts: dict[str, Any] = {
        "mpiexec": find_mpiexec(),
        "mpi4py": package_version("mpi4py"),
        "library": None,
        "threads": None,
        "progress": None,
    }
    if facts["mpi4py"] is None:
        return facts | {"problem": f"no mpi4py; {how_to_install('mpich')}"}
    try:
        MPI = importlib.import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        return facts | {"problem": str(error).partition("\n")[0]}
    level = MPI.Query_thread()
    names = ("THREAD_SINGLE", "THREAD_FUNNELED", "THREAD_SERIALIZED", "THREAD_MULTIPLE")
    facts["library"] = " ".join(
        MPI.Get_library_version().partition("\n")[0].rstrip("\0").split()
    )
    facts["threads"] = next(n for n in names if getattr(MPI, n) == level)
    facts["progress"] = (
        "progress in the background"
        if level == MPI.THREAD_MULTIPLE
        else "iallreduce completes inside wait"
    )
    return facts


def _torch() -> dict[str, Any]:
    if package_version("torch") is None:
        return {"torch": None, "gloo": False}
    try:
        distributed = importlib.import_module("torch.distributed")
    except (ImportError, OSError) as error:
        problem = str(error).partition("\n")[0]
        return {"torch": package_version("torch"), "gloo": False, "problem": problem}
    gloo = distributed.is_available() and distributed.is_gloo_available()
    return {"torch": package_version("torch"), "gloo": bool(gloo)}


def _networks() -> dict[str, dict[str, Any]]:
    """Return the saved network measurements with their age in seconds."""
    return {
        str(file_for(m.engine, m.hosts)): {
            "engine": m.engine,
            "hosts": list(m.hosts),
            "ranks": m.ranks,
            "age": round(m.age),
        }
        for m in load_all()
    }


def _settings() -> dict[str, dict[str, str | bool]]:
    return {
        name: {
            "value": os.environ.get(name, default),
            "set": name in os.environ,
            "meaning": meaning,
        }
        for name, (default, meaning) in SETTINGS.items()
    }


def _rows(facts: Facts) -> list[tuple[str, str]]:
    kernels, mpi, torch = facts["kernels"], facts["mpi"], facts["torch"]
    others = [name for name in kernels["available"] if name != kernels["active"]]
    rows = [(name, found or "not installed") for name, found in facts["versions"].items()]
    rows.append(("instruction set", kernels["active"] or kernels["problem"]))
    rows.append(("  also available", ", ".join(others) or "none"))
    rows.append(("mpi4py", mpi["mpi4py"] or mpi["problem"]))
    if mpi["library"]:
        rows.append(("  library", mpi["library"]))
        rows.append(("  threads", f"{mpi['threads']}: {mpi['progress']}"))
    elif mpi["mpi4py"]:
        rows.append(("  library", mpi["problem"]))
    rows.append(("mpiexec", mpi["mpiexec"] or f"none; {how_to_install('mpich')}"))
    gloo = "with gloo" if torch["gloo"] else torch.get("problem", "without gloo")
    rows.append(
        ("torch", f"{torch['torch']}, {gloo}" if torch["torch"] else "not installed")
    )
    for found in facts["networks"].values():
        where = ", ".join(found["hosts"][:3]) + ", ..." * (len(found["hosts"]) > 3)
        about = f"{found['ranks']} ranks on {found['engine']}, {where}"
        rows.append(("network", f"{about}: measured {format_age(found['age'])} ago"))
    if not facts["networks"]:
        rows.append(("network", "not measured; sparcml run -n 4 -m sparcml probe"))
    for name, setting in facts["settings"].items():
        origin = "" if setting["set"] else " (default)"
        rows.append((name, f"{setting['value']}{origin}: {setting['meaning']}"))
    return rows


def _show(facts: Facts) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, value in _rows(facts):
        table.add_row(Text(name), Text(value))
    Console().print(table)
