"""The limit on the work of one check of a value against a schema, so that no schema and no value can block the daemon."""


class WorkError(Exception):
    """A check would take more work than its limit allows."""


class Work:
    """The work that is left for one check. Each check defines its own unit of work."""

    def __init__(self, most: int) -> None:
        self._left = most

    def spend(self, amount: int) -> None:
        """Use up some work. Raises WorkError if not enough is left."""
        self._left -= amount
        if self._left < 0:
            raise WorkError
