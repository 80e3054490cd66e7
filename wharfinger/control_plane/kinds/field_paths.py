"""Field paths as ``field.Path`` writes them: ``spec.list[0]``, ``spec.map[key]``."""

from wharfinger.formats.json.value import JsonObject


def joined(path: str, name: str) -> str:
    """Return the path of a member."""
    return f"{path}.{name}" if path else name


def keyed(path: str, name: str) -> str:
    """Return the path of a member of a map."""
    return f"{path}[{name}]"


def indexed(path: str, index: int) -> str:
    """Return the path of an item."""
    return f"{path}[{index}]"


def at_step(schema: JsonObject, path: str, step: str | int) -> str:
    """Return the path of a part of a value with this schema: an item, a declared member, or a key of a map."""
    if isinstance(step, int):
        return indexed(path, step)
    declared = schema.get("properties")
    return joined(path, step) if isinstance(declared, dict) and step in declared else keyed(path, step)
