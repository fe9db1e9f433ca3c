"""Training configurations of `sparcml fit` and runs of them in this process."""

import sparcml
from sparcml.linear.training.config import TrainingConfig
from sparcml.linear.training.loop import train
from sparcml.linear.training.observer import TrainingObserver

COMMON = {"batch_size": 16, "epochs": 3, "learning_rate": 0.5, "seed": 3, "features": 300}


def config(text, **changes):
    """Return a configuration for a file, writing the model beside it."""
    return TrainingConfig(
        **{**COMMON, "files": [text], "out": text.with_name("model"), **changes}
    )


def trained(options, ranks=3):
    """Return the bytes of the model and the result of each rank."""
    results = sparcml.launch(lambda comm: train(comm, options, TrainingObserver()), ranks)
    return options.out.read_bytes(), results
