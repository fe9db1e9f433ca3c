"""Programs that fit linear models, each run at its best: one a file, all to the same loss."""
