"""Entry point of `python -m sparcml`."""

from sparcml.cli import main

if __name__ == "__main__":
    main()
