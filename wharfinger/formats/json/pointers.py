"""JSON pointers (RFC 6901)."""

from collections.abc import Sequence


def pointer_steps(pointer: str) -> tuple[str, ...]:
    """Return the steps of a pointer, unescaped: ``/a~1b/0`` → ``("a/b", "0")``. The pointer ``""`` has no steps."""
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])


def pointer_of(path: Sequence[str]) -> str:
    """Return the pointer with these steps: ``("a/b", "0")`` → ``/a~1b/0``."""
    return "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in path)
