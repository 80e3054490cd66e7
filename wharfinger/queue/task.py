"""The tasks that a queue runs. A task must be idempotent: it may run again after a failure or a crash of the daemon."""

from typing import Protocol


class Task(Protocol):
    """One step of a package's life; ``name`` is its identity in dumps and for ``unique`` of `Queues.enqueue`."""

    @property
    def name(self) -> str:
        """A short name, the same for the same work: ``Download``, ``Hook 10-labels kubernetes pods``."""
        ...

    async def execute(self) -> None:
        """Do the work. Raises TaskFailed for expected failures; anything else it raises is a bug."""
        ...


class TaskFailed(Exception):  # noqa: N818 - it is the outcome of a task
    """The task could not do its work.

    ``permanent`` means that a retry cannot help until an input changes (bad YAML, a schema violation): the task is parked.
    """

    def __init__(self, message: str, *, permanent: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.permanent = permanent
