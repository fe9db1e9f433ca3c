"""Training with torch: DDP and optimizers."""
