"""The handle of one operation, such as an Update or a Removal. The operation is cancelled through it, for example when a later
operation supersedes it.

When the handle is cancelled, the queue cancels the CancelScope of the operation's running task, and drops the operation's
other tasks, even during a backoff (spec/runtime §2.2, §3). A trio CancelScope cannot be used as the handle: it can be entered
only once and belongs to one task, while an operation has several tasks, most of which have not begun.

Invariants: a cancellation is permanent, and its first cause is kept; listeners are called exactly once, within `cancel`
itself. The handle is synchronous, does not know trio or queues, and is only used from the event loop's thread.
"""

from collections.abc import Callable
from functools import partial


class WorkScope:
    """One operation that can be cancelled; ``name`` identifies it in logs and dumps."""

    __slots__ = ("_cause", "_listeners", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._cause: str | None = None
        self._listeners: dict[object, Callable[[str], None]] = {}

    @property
    def cancelled(self) -> bool:
        """Return whether `cancel` was called."""
        return self._cause is not None

    @property
    def cause(self) -> str:
        """The cause of the cancellation; empty if the operation was not cancelled."""
        return self._cause or ""

    def cancel(self, cause: str) -> None:
        """Cancel the operation. Idempotent, and synchronous: when this returns, none of its tasks is waiting any more.

        ``cause`` is shown to users: "package version changed", "removal started".
        """
        if self._cause is not None:
            return
        if not cause:
            raise ValueError(f"{self.name}: a cancellation needs a cause that can be shown to users")
        self._cause = cause
        listeners, self._listeners = self._listeners, {}
        for listener in listeners.values():
            listener(cause)

    def on_cancel(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Call ``listener(cause)`` when the operation is cancelled, or immediately if it is cancelled already.

        Return a function that removes the listener.
        """
        if self._cause is not None:
            listener(self._cause)
            return lambda: None
        key = object()
        self._listeners[key] = listener
        return partial(self._forget, key)

    def _forget(self, key: object) -> None:
        self._listeners.pop(key, None)

    def __repr__(self) -> str:
        state = f"cancelled: {self._cause}" if self._cause is not None else "live"
        return f"<WorkScope {self.name!r} {state}>"
