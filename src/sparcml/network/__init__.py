"""What a network costs: probe it, model it, emulate it, simulate it, plan for it."""
