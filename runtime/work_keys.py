"""The controller's inbox: a set of names with something to look at (client-go's work queue in spirit).

Level-triggered and coalescing: adding a name that waits already adds nothing, so the inbox is bounded by the number of
objects. A name in hand is never handed to a second worker; if it is added meanwhile, it comes again once it is done.

* ``waiting`` and ``in_hand`` are disjoint; ``again`` is a subset of ``in_hand``.
* Every name added is handed out at least once after its latest `add`.
"""

from dataclasses import dataclass, field

import trio


@dataclass(slots=True)
class WorkKeys:
    """Names to look at, in the order in which they were first added."""

    _waiting: dict[str, None] = field(default_factory=dict)
    _in_hand: set[str] = field(default_factory=set)
    _again: set[str] = field(default_factory=set)
    _later: dict[str, float] = field(default_factory=dict)
    _wake: trio.Event = field(default_factory=trio.Event)

    def add(self, name: str) -> None:
        """Look at ``name`` (again)."""
        if name in self._in_hand:
            self._again.add(name)
        else:
            self._waiting[name] = None
            self._wake.set()

    def add_later(self, name: str, delay_s: float) -> None:
        """Look at ``name`` once ``delay_s`` has passed, unless it is looked at before."""
        self._later[name] = trio.current_time() + delay_s
        self._wake.set()

    async def take(self) -> str:
        """The next name, taken in hand."""
        while True:
            next_due = self._add_due()
            if self._waiting:
                name = next(iter(self._waiting))
                del self._waiting[name]
                self._later.pop(name, None)
                self._in_hand.add(name)
                return name
            # No await between the check above and this line: an `add` cannot be missed.
            self._wake = trio.Event() if self._wake.is_set() else self._wake
            with trio.move_on_at(next_due):
                await self._wake.wait()

    def _add_due(self) -> float:
        """Add what is due; the time of what is due next (infinity: nothing)."""
        now = trio.current_time()
        for name in [name for name, due in self._later.items() if due <= now]:
            del self._later[name]
            self.add(name)
        return min(self._later.values(), default=float("inf"))

    def done(self, name: str) -> None:
        """The name is no longer in hand."""
        self._in_hand.discard(name)
        if name in self._again:
            self._again.discard(name)
            self.add(name)
