"""Calls whose results are recorded in `digests.json`, as digests of their bytes.

Each function returns a dictionary from case name to digest. The cases use fixed public names
only, and pass a seed wherever a call draws random numbers.
"""

from __future__ import annotations

import hashlib
import warnings
from typing import Any

import numpy as np

import sparcml
from sparcml import Compressed, Stream

RANKS = (1, 3, 4, 8)
ALGORITHMS = (
    "ssar_recursive_double",
    "ssar_split_allgather",
    "dsar_split_allgather",
    "ssar_ring",
    "hierarchical",
    "ring",
    "recursive_double",
    "halving_doubling",
    "double_binary_tree",
    "master",
    "sharded",
    "ssar_allgather",
)
QUANTIZING = ("ssar_split_allgather", "dsar_split_allgather", "ssar_allgather")
OPS = ("sum", "mean", "min", "max", "prod")
INPUTS = [("f4", 1), ("f8", 1), ("f4", 4), ("f8", 4)]  # dtype, block
SIZE = 1200


def renamed(new: str, old: str) -> Any:
    """Return a class that version 0.1 knew under another name."""
    return getattr(sparcml, new, None) or getattr(sparcml, old)


Integer = renamed("Integer", "Whole")
BlockTopK = renamed("BlockTopK", "Blocks")
GLOBAL_TOPK = "global_topk" if "global_topk" in Compressed.__dataclass_fields__ else "keep"


def digest(*parts: Any) -> str:
    """Return a short hash of arrays, streams, bytes and None."""
    whole = hashlib.sha256()
    for part in parts:
        if isinstance(part, Stream):
            whole.update(f"{part.size} {part.block} {part.is_dense}".encode())
            arrays: list[Any] = (
                [part.values] if part.is_dense else [part.indices, part.values]
            )
        else:
            arrays = [part]
        for array in arrays:
            if isinstance(array, bytes):
                whole.update(array)
            else:
                flat = np.ascontiguousarray(array)
                whole.update(f"{flat.dtype} {flat.shape}".encode() + flat.tobytes())
    return whole.hexdigest()[:12]


def stream(rank: int, dtype: str, block: int, nnz: int = 90) -> Stream:
    """Return a stream of floats that round when they are added."""
    rng = np.random.default_rng([rank, block])
    nnz //= block
    indices = np.sort(rng.choice(SIZE // block, nnz, replace=False))
    return Stream(
        SIZE, indices, rng.standard_normal(nnz * block).astype(dtype), block=block
    )


def allreduce(comm: Any, algorithm: str) -> dict[str, str]:
    """Reduce with every operation, dtype and block; quantize where that is possible."""
    found = {}
    for op in OPS:
        for dtype, block in INPUTS:
            total = comm.allreduce(stream(comm.rank, dtype, block), op, algorithm, seed=5)
            found[f"{op} {dtype} block {block}"] = digest(total)
    for nnz in (4, 600):
        total = comm.allreduce(stream(comm.rank, "f4", 1, nnz), "sum", algorithm, seed=5)
        found[f"sum of {nnz}"] = digest(total)
    full = np.random.default_rng(comm.rank).standard_normal(777).astype(np.float32)
    found["array"] = digest(comm.allreduce(full, "sum", algorithm, seed=5))
    for name, quantizer in (QUANTIZERS if algorithm in QUANTIZING else {}).items():
        if name == "Integer":  # exact on its own grid only
            continue
        x = stream(comm.rank, "f4", 1)
        total, seen = comm.allreduce(
            x, "sum", algorithm, quantizer, return_seen=True, seed=5
        )
        found[f"quantized by {name}"] = digest(total)
        found[f"quantized by {name}, seen on rank 0"] = (
            digest(seen) if not comm.rank else ""
        )
    return found


def oktopk(comm: Any) -> dict[str, str]:
    """Reduce with the only lossy algorithm, three times on one communicator."""
    found = {}
    with comm.duplicate() as fresh:
        for call in range(3):
            total, seen = fresh.allreduce(
                stream(comm.rank, "f4", 1), "sum", "oktopk", return_seen=True, seed=5
            )
            found[f"call {call}"] = digest(total)
            found[f"call {call}, seen on rank 0"] = digest(seen) if not comm.rank else ""
    return found


def others(comm: Any) -> dict[str, str]:
    """Run the collectives other than allreduce."""
    found = {}
    for dtype, block in INPUTS:
        x, name = stream(comm.rank, dtype, block), f"{dtype} block {block}"
        for op in OPS:
            own = comm.reduce_scatter(x, op=op)
            parts = comm.allgather(np.asarray(own.to_dense()))
            found[f"reduce_scatter {op} {name}"] = digest(*parts)
            root = comm.size - 1
            total = comm.reduce(x, op=op, root=root)
            again = comm.broadcast(x if total is None else total, root=root)
            found[f"reduce {op} {name}"] = digest(again)
        found[f"allgather {name}"] = digest(*comm.allgather(x))
        found[f"broadcast {name}"] = digest(comm.broadcast(x, root=comm.size // 2))
    return found


QUANTIZERS = {
    "QSGD 8": sparcml.QSGD(8, bucket=1024),
    "QSGD 4, bucket 64": sparcml.QSGD(4, bucket=64),
    "QSGD 3, l2": sparcml.QSGD(3, bucket=64, norm="l2"),
    "NUQSGD 4": sparcml.NUQSGD(4),
    "NUQSGD 3, bucket 50": sparcml.NUQSGD(3, bucket=50),
    "TernGrad": sparcml.TernGrad(),
    "Natural": sparcml.Natural(),
    "Half": sparcml.Half(),
    "Half, bfloat16": sparcml.Half("bfloat16"),
    "OneBit": sparcml.OneBit(),
    "OneBit, bucket 64": sparcml.OneBit(64),
    "Sign": sparcml.Sign(),
    "Integer": Integer(0.25, 31),
    "QSGD, elias": sparcml.QSGD(4, bucket=1024, norm="l2", coder="elias"),
    "QSGD, rice": sparcml.QSGD(2, bucket=1024, coder="rice", reduced_bits=3),
}
VECTORS = {
    "normal": np.random.default_rng(1).standard_normal(3001).astype(np.float32),
    "sparse": np.where(np.arange(1000) % 17 == 3, np.arange(1000) / 7 - 60, 0).astype("f4"),
    "empty": np.zeros(0, np.float32),
    "one": np.array([-2.5], np.float32),
}


def quantizers() -> dict[str, str]:
    """Encode vectors by every quantizer, and decode them."""
    found = {}
    for name, quantizer in QUANTIZERS.items():
        for what, vector in VECTORS.items():
            multiples = np.round(vector * 4).clip(-31, 31) / 4
            code = quantizer.encode(multiples if name == "Integer" else vector, seed=7)
            found[f"{name}: {what}"] = digest(bytes(code), quantizer.decode(code))
    return found


SPARSIFIERS = {
    "TopK": sparcml.TopK(0.02),
    "TopK k": sparcml.TopK(k=7),
    "TopK bucket": sparcml.TopK(k=4, bucket=512),
    "RandomK": sparcml.RandomK(0.02),
    "RandomK unscaled": sparcml.RandomK(0.02, scaled=False),
    "RandomK shared": sparcml.RandomK(0.9, scaled=False, shared=True),
    "Threshold": sparcml.Threshold(2.0),
    "Threshold adaptive": sparcml.Threshold(ratio=0.02),
    "Threshold strom": sparcml.Threshold(2.0, strom=True),
    "BlockTopK": BlockTopK(0.05, block=8),
}


def sparsifiers() -> dict[str, str]:
    """Select from vectors by every sparsifier."""
    found = {}
    for name, sparsifier in SPARSIFIERS.items():
        for dtype in ("f4", "f8"):
            for what, vector in VECTORS.items():
                picked = sparsifier.select(vector.astype(dtype), seed=7)
                found[f"{name}: {what} {dtype}"] = digest(picked)
    return found


def _methods() -> dict[str, Any]:
    def small(*args: Any, **kwargs: Any) -> Any:
        return Compressed(*args, **{"dense_below": 100, **kwargs})

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # methods without feedback warn
        return {
            "Dense": sparcml.Dense(),
            **{f"Compressed {n}": small(s) for n, s in SPARSIFIERS.items()},
            **{
                f"Compressed {n}": small(quantize=q)
                for n, q in QUANTIZERS.items()
                if n != "Integer"
            },
            "Compressed TopK, QSGD 4": small(
                sparcml.TopK(k=4, bucket=64), sparcml.QSGD(4, bucket=1024)
            ),
            "Compressed TopK, OneBit": small(sparcml.TopK(0.05), sparcml.OneBit()),
            "oktopk": small(sparcml.TopK(0.02), algorithm="oktopk"),
            "gTop-k": small(sparcml.TopK(0.02), **{GLOBAL_TOPK: sparcml.TopK(0.02)}),
            "recursive": small(sparcml.TopK(0.02), algorithm="ssar_recursive_double"),
            "without feedback": small(sparcml.TopK(0.02), error_feedback=False),
            "PowerSGD": sparcml.PowerSGD(rank=2),
            "PowerSGD, cold": sparcml.PowerSGD(rank=1, warm_start=False),
            "DGC": sparcml.DGC(ratio=0.02, dense_below=100),
            "DGC, plain": sparcml.DGC(ratio=0.02, momentum=0.0, dense_below=100),
            "MajorityVote": sparcml.MajorityVote(),
            "MajorityVote, momentum": sparcml.MajorityVote(momentum=0.9),
        }


def _grouped() -> dict[str, Any]:
    """Return methods that quantize some parameters in one group, and the others in another."""
    fine = sparcml.QSGD(4, bucket=64)
    topk_adam = sparcml.TopKAdam(
        sparcml.TopK(0.2), fine, first=fine, warm_up=2, dense_below=100
    )
    return {
        "TopKAdam, in both phases": topk_adam,
        "TernGrad, some beyond the fence": Compressed(
            quantize=sparcml.TernGrad(), fence=10.0, dense_below=100
        ),
        "Adaptive bits": sparcml.Adaptive(quantize=fine, dense_below=100, every=2),
    }


METHODS = _methods()
GROUPED = _grouped()
SHAPES = {"bias": (7,), "small": (6, 5), "table": (40, 25), "weight": (30, 6, 7)}


def gradient(rank: int, step: int) -> dict[str, Any]:
    """Return a gradient of four parameters."""
    rng = np.random.default_rng([rank, step])
    return {n: rng.standard_normal(s).astype(np.float32) for n, s in SHAPES.items()}


def uneven(rank: int, step: int) -> dict[str, Any]:
    """Return a gradient with outliers in one parameter; another one is unused at first."""
    new = gradient(rank, step)
    squares = new["weight"] * new["weight"]  # powers of NumPy depend on the processor
    new["weight"] = new["weight"] * squares * squares
    return new if step > 1 else {n: g for n, g in new.items() if n != "table"}


def aggregate(comm: Any, name: str) -> dict[str, str]:
    """Aggregate for five steps; digest every mean and rank 0's last state."""
    method, found = {**METHODS, **GROUPED}[name], {}
    gradient_at = uneven if name in GROUPED else gradient
    state = method.init(SHAPES)
    for step in range(5):
        mean, state = method.aggregate(comm, gradient_at(comm.rank, step), state)
        found[f"step {step}"] = digest(*(mean[n] for n in sorted(mean)))
    arrays = (np.asarray(state[key]) for key in sorted(state))
    found["state of rank 0"] = digest(*arrays) if not comm.rank else ""
    return found


def rows() -> tuple[Any, Any]:
    """Return 300 sparse rows and their labels."""
    rng = np.random.default_rng(3)
    X = np.where(rng.random((300, 60)) < 0.15, rng.standard_normal((300, 60)), 0)
    y = np.where(X @ rng.standard_normal(60) + 0.2 > 0, 1, -1)
    return X.astype(np.float64), y


def linear(comm: Any) -> dict[str, str]:
    """Train each estimator for two epochs, by both solvers."""
    from scipy.sparse import csr_array

    from sparcml.linear import Lasso, LinearSVC, LogisticRegression, Ridge

    X, y = rows()
    X, y = X[comm.rank :: comm.size], y[comm.rank :: comm.size]
    found = {}
    makers = {"LogisticRegression": LogisticRegression, "LinearSVC": LinearSVC}
    makers |= {"Lasso": Lasso, "Ridge": Ridge}
    for name, maker in makers.items():
        for solver in ("sgd", "scd"):
            model = maker(solver=solver, max_iter=2, tol=0.0, random_state=5, comm=comm)
            model.fit(csr_array(X), y)
            found[f"{name} {solver}"] = digest(model.coef_, np.asarray(model.intercept_))
    return found


def messages() -> dict[str, str]:
    """Encode one message in every index format, block, dtype and value format."""
    from sparcml import wire

    found = {}
    tag = wire.Tag(27, 1234, 3)
    rng = np.random.default_rng(8)
    for dtype, block in INPUTS:
        for nnz in (0, 1, 12, 100, 500, 900, 1200):
            count = nnz // block
            indices = np.sort(rng.choice(SIZE // block, count, replace=False))
            x = Stream(
                SIZE, indices, rng.standard_normal(count * block).astype(dtype), block=block
            )
            message, _ = wire.encode(x, tag)
            found[f"{dtype} block {block} nnz {nnz}"] = digest(message.tobytes())
            if dtype == "f8":
                continue
            for name, quantizer in QUANTIZERS.items():
                if name == "Integer":
                    continue
                message, _ = wire.encode(x, tag, quantizer, seed=9)
                found[f"{name} block {block} nnz {nnz}"] = digest(message.tobytes())
    return found


def collectives(comm: Any) -> dict[str, dict[str, str]]:
    """Run everything that needs ranks: by group, then by case."""
    found = {f"allreduce {name}": allreduce(comm, name) for name in ALGORITHMS}
    found["allreduce oktopk"] = oktopk(comm)
    found["other collectives"] = others(comm)
    return found


def methods(comm: Any) -> dict[str, dict[str, str]]:
    """Run every aggregation method: by method, then by step."""
    return {f"aggregate {name}": aggregate(comm, name) for name in (*METHODS, *GROUPED)}


def single() -> dict[str, dict[str, str]]:
    """Run everything that needs no ranks."""
    return {
        "quantizers": quantizers(),
        "sparsifiers": sparsifiers(),
        "messages": messages(),
    }
