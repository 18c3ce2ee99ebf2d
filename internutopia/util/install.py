"""Install hint: the end of an error message about a package that is not installed."""

COMMAND = "pip install -e '.["


def install_hint(extra: str) -> str:
    """The command that brings an extra: from the checkout, since on package indexes `internutopia` is version 2."""
    return f"{COMMAND}{extra}]' in the checkout of InternUtopia"
