"""Field paths as ``field.Path`` writes them: ``spec.list[0]``, ``spec.map[key]``."""


def joined(path: str, name: str) -> str:
    """A member."""
    return f"{path}.{name}" if path else name


def keyed(path: str, name: str) -> str:
    """A member of a map."""
    return f"{path}[{name}]"


def indexed(path: str, index: int) -> str:
    """An item."""
    return f"{path}[{index}]"
