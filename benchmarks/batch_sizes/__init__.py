"""Training with batches of 2^4 to 2^13 images: SGD, LARS, LAMB and SAM, with compression or not."""
