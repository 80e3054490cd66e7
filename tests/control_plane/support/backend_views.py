"""A cluster as strategies and admission see it, made of a few objects."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from wharfinger.formats.json.value import JsonObject, find


@dataclass
class FakeView:
    """Objects by (group, plural); draws are always the first."""

    stored: dict[tuple[str, str], list[JsonObject]] = field(default_factory=dict)
    dry_run: bool = False

    def objects(self, group: str, plural: str, namespace: str = "") -> Sequence[JsonObject]:
        """The objects of a kind."""
        found = self.stored.get((group, plural), [])
        return [obj for obj in found if not namespace or find(obj, "metadata", "namespace") == namespace]

    def object(self, group: str, plural: str, namespace: str, name: str) -> JsonObject | None:
        """One object."""
        return next(
            (obj for obj in self.objects(group, plural, namespace) if find(obj, "metadata", "name") == name), None
        )

    def now(self) -> datetime:
        """Always the same time."""
        return datetime(2026, 11, 21, 4, tzinfo=UTC)

    def draw(self, count: int) -> int:
        """The first."""
        return 0 * count

    def new_uid(self) -> str:
        """A fixed one."""
        return "11111111-1111-4111-8111-111111111111"
