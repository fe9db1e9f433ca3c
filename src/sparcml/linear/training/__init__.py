"""Training of linear models on many ranks: configuration, epochs, checkpoints, models."""
