"""Real processes of torch.distributed. The programs here are started by the tests."""
