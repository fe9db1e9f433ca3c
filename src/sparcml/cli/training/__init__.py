"""What `sparcml fit` and `sparcml demo` share: settings, training on ranks, reports."""
