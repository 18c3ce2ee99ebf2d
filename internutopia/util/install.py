"""Install hint: the end of an error message about a package that is not installed."""

COMMAND = "pip install -e '.["


def install_hint(extra: str) -> str:
    """Return the command that installs an extra: from the checkout, as package indexes have `internutopia` 2."""
    return f"{COMMAND}{extra}]' in the checkout of InternUtopia"
