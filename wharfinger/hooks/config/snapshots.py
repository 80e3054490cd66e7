"""The snapshots that a binding gets: first those that it names, then those of the bindings in its group (spec hook-protocol
§1.4.7). Pure.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from wharfinger.formats.json.value import JsonValue, find_list, find_str
from wharfinger.hooks.config.problems import Problems


class Snapshots:
    """The kubernetes bindings of one hook, by name and by group."""

    def __init__(self, watched: Sequence[JsonValue], problems: Problems, *, default_name: str) -> None:
        """Prepare the lookup of ``watched``, the kubernetes bindings of the document, by name; a binding without a name is
        called ``default_name``.
        """
        self._names = Counter(find_str(item, "name") or default_name for item in watched)
        self._groups = _groups(watched, default_name)
        self._problems = problems

    def of(self, item: JsonValue, where: str) -> tuple[str, ...]:
        """Return the names of the snapshots that the binding ``item`` gets, without duplicates.

        If the binding names a snapshot that does not exist or is ambiguous, a problem at ``where`` is added.
        """
        own = [str(name) for name in find_list(item, "includeSnapshotsFrom")]
        for name in own:
            if self._names[name] == 0:
                self._problems.add(f"{where}.includeSnapshotsFrom is invalid: '{name}' binding name not found")
            elif self._names[name] > 1:
                self._problems.add(
                    f"{where}.includeSnapshotsFrom is invalid: there are {self._names[name]} '{name}' binding names"
                )
        return tuple(dict.fromkeys((*own, *self._groups.get(find_str(item, "group"), ()))))


def _groups(watched: Sequence[JsonValue], default_name: str) -> Mapping[str, tuple[str, ...]]:
    """Return the names of the kubernetes bindings of each group, in the order of the document."""
    groups: dict[str, list[str]] = {}
    for item in watched:
        if group := find_str(item, "group"):
            groups.setdefault(group, []).append(find_str(item, "name") or default_name)
    return {group: tuple(names) for group, names in groups.items()}
