"""Linear models on many ranks, as in Table 2 of the SparCML paper: measured and simulated."""
