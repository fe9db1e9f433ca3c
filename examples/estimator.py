"""A scikit-learn estimator on many processes: each rank has a part of the mails.

sparcml run -n 4 examples/estimator.py      (without a launcher: one rank)
"""

import numpy as np
from scipy import sparse

import sparcml
from sparcml.linear import InverseDecay, LogisticRegression, spam


def main() -> None:
    """Classify mails as spam by their words, with 16.6 million features."""
    with sparcml.world() as comm:
        train, test = spam(comm)
        model = LogisticRegression(
            C=1000.0,
            early_stopping=True,  # validated on a tenth of the mails
            n_iter_no_change=1,
            tol=0.05,
            learning_rate=InverseDecay(50.0, decay=0.5),
            random_state=0,
            comm=comm,
        )
        model.fit(train.to_scipy(), train.labels)
        correct = np.sum(model.predict(test.to_scipy()) == test.labels)
        correct, count = comm.allreduce(np.array([correct, len(test)], np.float64))
        if comm.rank == 0:
            nonzero = sparse.csr_matrix(model.coef_).nnz
            print(f"{train.total} mails on {comm.size} ranks, {model.n_iter_} epochs")
            print(
                f"{nonzero} nonzero weights, accuracy {correct / count:.1%} on {count:.0f} "
                f"other mails"
            )


if __name__ == "__main__":
    main()
