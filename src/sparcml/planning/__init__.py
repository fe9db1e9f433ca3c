"""Planning: models, the methods that may compress their gradients, and the time of a step."""
