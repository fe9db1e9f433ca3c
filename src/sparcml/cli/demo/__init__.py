"""The demonstration of `sparcml demo`: spam classification with sparse and dense allreduces."""
