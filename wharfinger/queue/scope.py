"""The handle of one operation, by which an operation that outranks it cancels an Update, a Reconciliation or a Removal.

A trio CancelScope can be entered once and belongs to one task; an operation is several tasks, most of which have not begun.
So the operation has this handle, and each *run* of a task has a CancelScope of its own, which its queue cancels when the
handle is cancelled (spec/runtime §2.2, §3: a cancelled task leaves at once, in the middle of a run or of its backoff).

Invariants: a cancellation is permanent, and its first cause is kept; listeners are called exactly once, within `cancel`
itself. Synchronous, with no knowledge of trio or of queues; only used from the event loop's thread.
"""

from collections.abc import Callable
from functools import partial


class WorkScope:
    """One cancellable operation; ``name`` says which, in logs and dumps."""

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
        """Why it was cancelled; empty as long as it was not."""
        return self._cause or ""

    def cancel(self, cause: str) -> None:
        """Cancel the operation. Synchronous: when this returns, none of its tasks is waiting any more. Idempotent.

        ``cause`` is shown to people: "package version changed", "removal started".
        """
        if self._cause is not None:
            return
        if not cause:
            raise ValueError(f"{self.name}: cancelling takes a cause that can be shown")
        self._cause = cause
        listeners, self._listeners = self._listeners, {}
        for listener in listeners.values():
            listener(cause)

    def on_cancel(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Have ``listener(cause)`` called by `cancel` (at once if that has happened); the answer takes it back."""
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
