"""Plans: the time of a step of training, estimated for every method."""
