"""The second scene of `sparcml demo`: an LSTM that reads, by DDP."""
