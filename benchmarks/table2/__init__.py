"""Linear models on many ranks, as in Table 2 of the SparCML paper: run, and simulated."""
