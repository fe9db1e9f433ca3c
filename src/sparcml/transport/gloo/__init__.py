"""Transport over torch.distributed, on separate gloo groups."""
