"""A backend whose members exist only in memory. A test controls the delay of its cache."""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import trio

from wharfinger.pools.claims.backend import Claimed, ClaimError, ConflictError
from wharfinger.pools.claims.events import Lost, Member, Seen


@dataclass
class FakeBackend:
    """A backend with the true state of its members, and the changes that its cache has not shown yet.

    ``trip_s`` is the duration of a claim. While ``lagging`` is true, the cache shows nothing until `catch_up`. ``trouble`` may
    raise an error before a claim is checked. ``owners`` maps the uid of each member to the number of its claims since it was
    last idle. This number must never exceed 1.
    """

    trip_s: float = 0.0
    lagging: bool = False
    trouble: Callable[[Member, str], None] | None = None
    truth: dict[str, Member] = field(default_factory=dict)
    claimed: list[tuple[str, str]] = field(default_factory=list)
    recycled: list[str] = field(default_factory=list)
    owners: Counter[str] = field(default_factory=Counter)
    notify: Callable[[], None] = lambda: None
    _unseen: deque[Seen | Lost] = field(default_factory=deque)
    _hidden: deque[Seen | Lost] = field(default_factory=deque)
    _version: int = 0

    def put(self, *uids: str, idle: bool = True, protected: bool = False) -> None:
        """Create or change members."""
        for uid in uids:
            self._version += 1
            if idle:
                self.owners[uid] = 0
            self._write(Member(uid, self._version, idle=idle, protected=protected))

    def drop(self, uid: str) -> None:
        """Delete a member."""
        del self.truth[uid]
        self._show(Lost(uid))

    def change_unseen(self, uid: str, *, idle: bool = False) -> None:
        """Change a member. The cache does not show the change before `catch_up`."""
        lagging, self.lagging = self.lagging, True
        self.put(uid, idle=idle)
        self.lagging = lagging

    def catch_up(self) -> None:
        """Let the cache show all changes."""
        self._unseen += self._hidden
        self._hidden.clear()
        self.notify()

    def _write(self, member: Member) -> None:
        self.truth[member.uid] = member
        self._show(Seen(member))

    def _show(self, change: Seen | Lost) -> None:
        if self.lagging or self._hidden:
            self._hidden.append(change)
        else:
            self._unseen.append(change)
            self.notify()

    def changes(self) -> Sequence[Seen | Lost]:
        """Return the new changes that the cache shows."""
        found = tuple(self._unseen)
        self._unseen.clear()
        return found

    async def claim(self, member: Member, spec: str, /) -> Claimed[str]:
        """Claim a member if its version is unchanged, as an API server would."""
        await trio.sleep(self.trip_s)
        if self.trouble is not None:
            self.trouble(member, spec)
        if self.truth.get(member.uid) != member:
            raise ConflictError(f"{member.uid} has changed")
        if not member.idle:
            raise ClaimError(f"{member.uid} is not idle")
        self._version += 1
        self.owners[member.uid] += 1
        self.claimed.append((spec, member.uid))
        self._write(replace(member, version=self._version, idle=False))
        return Claimed(self._version, member.uid)

    async def recycle(self, uid: str) -> None:
        """Make the member idle again."""
        await trio.lowlevel.checkpoint()
        self.recycled.append(uid)
        if uid in self.truth:
            self.put(uid)
