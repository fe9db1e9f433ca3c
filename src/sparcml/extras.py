"""How to install the optional packages, which pyproject.toml lists as extras."""


def how_to_install(extra: str) -> str:
    """Return the command for an extra; sparcml is installed from a clone, not from an index."""
    return f"pip install '.[{extra}]' in the clone of sparcml"
