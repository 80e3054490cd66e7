"""Field paths as ``field.Path`` writes them: ``spec.list[0]``, ``spec.map[key]``."""


def joined(path: str, name: str) -> str:
    """Return the path of a member."""
    return f"{path}.{name}" if path else name


def keyed(path: str, name: str) -> str:
    """Return the path of a member of a map."""
    return f"{path}[{name}]"


def indexed(path: str, index: int) -> str:
    """Return the path of an item."""
    return f"{path}[{index}]"
