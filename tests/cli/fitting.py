"""What tests of `sparcml fit` share: its settings, and a run of it in this process."""

import sparcml
from sparcml.linear.training.bar import Bar
from sparcml.linear.training.config import Settings
from sparcml.linear.training.loop import train

USUAL = {
    "loss": "logistic",
    "solver": "sgd",
    "batch": 16,
    "epochs": 3,
    "rate": 0.5,
    "steps": "constant",
    "decay": 1.0,
    "warm_up": 0.0,
    "momentum": 0.0,
    "block": 100,
    "l1": 0.0,
    "l2": 0.0,
    "intercept": True,
    "seed": 3,
    "communication": "sparse",
    "algorithm": "auto",
    "compress": None,
    "held_out": 0.0,
    "patience": 3,
    "tolerance": None,
    "features": 300,
    "zero_based": None,
    "cache": False,
    "checkpoint": None,
    "checkpoint_every": 0.0,
    "class_weight": None,
    "weights": None,
    "resume": False,
}


def settings(text, **changes):
    return Settings(
        **{**USUAL, "files": (text,), "out": text.with_name("model"), **changes}
    )


def trained(wanted, ranks=3):
    """The bytes of the model, and what each rank found."""
    found = sparcml.launch(lambda comm: train(comm, wanted, Bar(False, False)), ranks)
    return wanted.out.read_bytes(), found
