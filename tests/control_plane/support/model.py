"""A simple model of a control plane: the answers that clients got, and rules that must hold for all answers together.

Clients record every answer to a write with the resourceVersion of that write. The writes of an object, sorted by
resourceVersion, are its life. Each write is applied to the state that the write before it left. The result must be the object
in the answer. So no update is lost or invented. A list at a revision must contain exactly the results of the writes up to that
revision. The state that a watcher puts together from its events must equal the list at the end.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find, find_list, find_object, find_str
from wharfinger.kube.field_sets import FieldSet

Data = dict[str, str]


@dataclass(frozen=True)
class Write:
    """An answered write: the requested change of ``data``, in which None deletes a member, and the resulting object.

    A ``whole`` write replaces all data. For a deletion, ``after`` is None.
    """

    revision: int
    name: str
    asked: Mapping[str, str | None]
    whole: bool
    after: JsonObject | None
    read_at: int = 0
    """The revision on which the writer insisted; 0 if it insisted on none."""
    others: list["Write"] = field(default_factory=list, compare=False)
    """Other writes that were answered with the same revision: one of all these writes made it, the others changed nothing."""


@dataclass
class Story:
    """All answers that clients got, to be checked together."""

    writes: list[Write] = field(default_factory=list)
    lists: list[tuple[int, dict[str, Data]]] = field(default_factory=list)
    watched: list[tuple[int, str, JsonObject | None]] = field(default_factory=list)
    """Events: revision, name, object; None if the object was deleted."""
    unknown: set[str] = field(default_factory=set)
    """Objects with a write that was never answered."""
    deleted: list[tuple[str, str]] = field(default_factory=list)
    """Deletions that were answered: name and uid. The answer does not contain the revision."""
    ends: dict[tuple[str, str], int] = field(default_factory=dict)
    """The revision at which watchers saw an object deleted, by name and uid."""

    def check(self, final: Sequence[JsonObject], followers: Sequence[Mapping[str, JsonObject]]) -> None:
        """Check that all answers fit together. ``final`` is the list at the end, and ``followers`` are the final states of
        watchers.
        """
        vague = self._add_deletions()
        ordered = sorted(self.writes, key=lambda write: (write.revision, write.after is None))
        revisions = [write.revision for write in ordered if write.after is not None]
        assert len(set(revisions)) == len(revisions), "two writes took one revision"
        lives: defaultdict[str, list[Write]] = defaultdict(list)
        for write in ordered:
            lives[write.name].append(write)
        for name, life in lives.items():
            if name not in self.unknown:
                check_life(life)
        known = {name_of(obj): obj for obj in final}
        for name, life in lives.items():
            self._check_end(name, life[-1], known.get(name))
        for follower in followers:
            assert follower == known, difference(follower, known)
        states = {write.revision: write for write in ordered if write.after is not None}
        for revision, name, obj in self.watched:
            if obj is None:
                continue  # the revision of a deletion is known from these events
            known_write = states.get(revision)
            assert known_write or name in self.unknown, f"an event of {name} at {revision} that nobody wrote"
            assert known_write is None or (known_write.name, known_write.after) == (name, obj)
        self._check_lists(ordered, vague | self.unknown)
        for obj in final:
            check_managers(obj)

    def _add_deletions(self) -> set[str]:
        """Add the deletions to the writes. A deletion whose revision no watcher saw is placed after all writes of its object.
        Return the names of the objects with such deletions.
        """
        vague = set()
        for name, uid in self.deleted:
            end = self.ends.get((name, uid))
            if end is None:
                vague.add(name)
                states = [write for write in self.writes if find(write.after, "metadata", "uid") == uid]
                end = max((write.revision for write in states), default=0)
            self.writes.append(Write(end, name, {}, whole=False, after=None))
        return vague

    def _check_end(self, name: str, last: Write, found: JsonObject | None) -> None:
        if name in self.unknown:
            assert found is None or revision_of(found) >= last.revision, f"{name} went back"
            return
        assert found == last.after, f"{name} is not as its last write left it"

    def _check_lists(self, ordered: Sequence[Write], vague: AbstractSet[str]) -> None:
        for revision, listed in self.lists:
            expected: dict[str, Data] = {}
            for write in ordered:
                if write.revision > revision:
                    break
                if write.after is None:
                    expected.pop(write.name, None)
                else:
                    expected[write.name] = data_of(write.after)
            expected = {name: data for name, data in expected.items() if name not in vague}
            seen = {name: data for name, data in listed.items() if name not in vague}
            assert seen == expected, f"the list at {revision}"


def check_life(life: Sequence[Write]) -> None:
    """Check that each state of an object is the result of a write, applied to the state before it."""
    before: Data | None = None
    revision = 0
    for write in life:
        if write.after is None:
            assert before is not None, f"{write.name} was deleted and not there"
            revision, before = write.revision, None
            continue
        after, what = data_of(write.after), f"{write.name} at {write.revision}"
        assert revision_of(write.after) == write.revision
        makers = [one for one in (write, *write.others) if made_of(one, before) == after]
        assert makers, f"{what}: an update was lost or invented"
        assert any(one.read_at in (0, revision) for one in makers), f"{what} overwrote what it had not seen"
        for one in (write, *write.others):
            assert one in makers or made_of(one, after) == after, f"{what}: an update was answered and not made"
        revision, before = write.revision, after


def made_of(write: Write, before: Data | None) -> Data:
    """Return the data after a write."""
    data = {} if write.whole or before is None else dict(before)
    for key, value in write.asked.items():
        if value is None:
            data.pop(key, None)
        else:
            data[key] = value
    return data


def check_managers(obj: JsonObject) -> None:
    """Check that managers own exactly the fields in ``data``, and that no manager has two entries for the same operation."""
    owned: set[str] = set()
    entries = [as_object(entry, "entry") for entry in find_list(obj, "metadata", "managedFields")]
    names = [(find(entry, "manager"), find(entry, "operation")) for entry in entries]
    assert len(set(names)) == len(names)
    for entry in entries:
        fields = FieldSet.from_fields_v1(find_object(entry, "fieldsV1"))
        assert FieldSet.from_fields_v1(fields.to_fields_v1()) == fields
        owned |= {element.removeprefix("f:") for element in fields.below("f:data").members if element != "."}
    assert owned == set(data_of(obj)), f"{name_of(obj)}: owned {owned}, there {set(data_of(obj))}"


def difference(one: Mapping[str, JsonObject], other: Mapping[str, JsonObject]) -> str:
    """Return a text with the names of the objects that differ between two maps."""
    return f"not the same: {sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))}"


def name_of(obj: JsonValue) -> str:
    """Return ``metadata.name``."""
    return find_str(obj, "metadata", "name")


def revision_of(obj: JsonValue) -> int:
    """Return ``metadata.resourceVersion``."""
    return int(find_str(obj, "metadata", "resourceVersion", default="0"))


def data_of(obj: JsonValue) -> Data:
    """Return the ``data`` of a ConfigMap, with all values as text."""
    return {key: str(value) for key, value in find_object(obj, "data").items()}
