"""A scikit-learn estimator on many processes: real mails, each rank its own part of them.

sparcml run -n 4 examples/estimator.py      (or alone: a world of one)
"""

import numpy as np
from scipy import sparse

import sparcml
from sparcml.linear import InverseDecay, LogisticRegression, spam


def main() -> None:
    """Tell spam from other mails by its words, at 16.6 million features."""
    with sparcml.world() as comm:
        train, test = spam(comm)
        model = LogisticRegression(
            C=1000.0,
            early_stopping=True,  # on a tenth of the mails
            n_iter_no_change=1,
            tol=0.05,
            learning_rate=InverseDecay(50.0, decay=0.5),
            random_state=0,
            comm=comm,
        )
        model.fit(train.to_scipy(), train.labels)
        right = np.sum(model.predict(test.to_scipy()) == test.labels)
        right, count = comm.allreduce(np.array([right, len(test)], np.float64))
        if comm.rank == 0:
            stored = sparse.csr_matrix(model.coef_).nnz
            print(f"{train.total} mails on {comm.size} ranks, {model.n_iter_} passes")
            print(f"{stored} weights, {right / count:.1%} of {count:.0f} others told right")


if __name__ == "__main__":
    main()
