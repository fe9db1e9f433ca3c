"""Settings of the test run, and the selection of `make quick`."""

import multiprocessing.process
import os
import subprocess

import pytest
from hypothesis import settings

import sparcml
from sparcml import kernels

# The network of this machine must not change what is tested.
os.environ["SPARCML_NETWORK"] = "none"

# A busy machine is not a failure.
settings.register_profile("sparcml", deadline=None)
settings.load_profile("sparcml")

# Marks of tests that take long: most of them start processes.
PROCESSES = ("mpi", "torch", "slow")

# What `--quick` runs of each parametrized test.
QUICK_RANKS = 3  # not a power of two
QUICK_CASES = 2
QUICK_EXAMPLES = 10  # of hypothesis


@pytest.fixture(params=kernels.isas())
def isa(request):
    """Runs the test on each instruction set of this processor."""
    before = kernels.isa()
    kernels.use_isa(request.param)
    yield request.param
    kernels.use_isa(before)


def pytest_report_header(config):
    return f"sparcml {sparcml.__version__}, kernels on {kernels.isa()} of {kernels.isas()}"


def pytest_addoption(parser):
    about = "run few cases of each short test, and none that starts processes"
    parser.addoption("--quick", action="store_true", help=about)


def pytest_configure(config):
    if config.getoption("--quick"):
        settings.register_profile("quick", deadline=None, max_examples=QUICK_EXAMPLES)
        settings.load_profile("quick")


def pytest_collection_modifyitems(config, items):
    """Select few cases of each short test, on one number of ranks, for --quick."""
    if not config.getoption("--quick"):
        _start_with_processes(config, items)
        return
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if not any(map(item.get_closest_marker, PROCESSES)):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    selected = {item for group in cases.values() for item in _few(group)}
    config.hook.pytest_deselected(items=[i for i in items if i not in selected])
    items[:] = [item for item in items if item in selected]


def _start_with_processes(config, items):
    """Let each worker of pytest-xdist begin with files whose tests start processes.

    Those take longest. Each worker is given one contiguous part of the tests, and takes over
    tests of the others when it has finished: the last should be short.
    """
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    files = {item.path for item in items if any(map(item.get_closest_marker, PROCESSES))}
    first = [item for item in items if item.path in files]
    then = [item for item in items if item.path not in files]
    items[:] = [
        item
        for worker in range(workers)
        for part in (first, then)
        for item in part[
            worker * len(part) // workers : (worker + 1) * len(part) // workers
        ]
    ]


def _few(cases):
    """Return evenly spaced cases, those on three ranks if there are any."""
    on_three = [case for case in cases if _parameters(case).get("ranks") == QUICK_RANKS]
    cases = on_three or cases
    count = min(QUICK_CASES, len(cases))
    return [cases[i * len(cases) // count] for i in range(count)]


def _parameters(item):
    return item.callspec.params if hasattr(item, "callspec") else {}


@pytest.fixture(scope="session", autouse=True)
def _no_processes(request):
    """Skip tests that start processes, for --quick."""
    if not request.config.getoption("--quick"):
        yield
        return

    def skip(*args, **kwargs):
        pytest.skip("starts a process")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "__init__", skip)
        patch.setattr(multiprocessing.process.BaseProcess, "start", skip)
        yield


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory, request):
    """A folder of this test run, the same for all workers of pytest-xdist."""
    base = tmp_path_factory.getbasetemp()
    is_worker = hasattr(request.config, "workerinput")
    return base.parent if is_worker else base
