"""A fake cluster, made of a few objects, for tests of admission and of strategies (the rules of a kind for writes)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from wharfinger.formats.json.value import JsonObject, find


@dataclass
class FakeView:
    """A fake cluster with ``stored`` objects by (group, plural). A random choice always takes the first item."""

    stored: dict[tuple[str, str], list[JsonObject]] = field(default_factory=dict)
    dry_run: bool = False

    def objects(self, group: str, plural: str, namespace: str = "") -> Sequence[JsonObject]:
        """Return the objects of a kind."""
        found = self.stored.get((group, plural), [])
        return [obj for obj in found if not namespace or find(obj, "metadata", "namespace") == namespace]

    def object(self, group: str, plural: str, namespace: str, name: str) -> JsonObject | None:
        """Return one object, or None if it does not exist."""
        return next(
            (obj for obj in self.objects(group, plural, namespace) if find(obj, "metadata", "name") == name), None
        )

    def now(self) -> datetime:
        """Return a time that is always the same."""
        return datetime(2026, 11, 21, 4, tzinfo=UTC)

    def draw(self, count: int) -> int:
        """Return 0, the index of the first choice."""
        return 0 * count

    def new_uid(self) -> str:
        """Return a fixed uid."""
        return "11111111-1111-4111-8111-111111111111"
