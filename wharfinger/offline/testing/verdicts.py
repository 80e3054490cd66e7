"""The comparison of a build with the expectations of a test. Pure.

Fields match as in kuttl and Chainsaw: an object may have more members than expected, and null expects an absent member. A list
must have exactly the expected items, in the same order. But if all expected items have a ``name`` (containers, ports,
variables), each is compared with the item of the same name, and the list may have more items.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from wharfinger.formats.json.value import JsonObject, JsonValue, canonical_json
from wharfinger.offline.orchestrator.result import Manifest, Result
from wharfinger.offline.store.identity import shown
from wharfinger.offline.store.kinds import SECRET
from wharfinger.offline.testing.case_file import Absent, Case, Count, Expectation, Fails, Matches, ObjectName

MOST_SHOWN: Final = 200
"""The largest number of characters of a value in a message."""
MOST_PROBLEMS: Final = 20


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one test. The test has passed if there are no problems."""

    case: Case
    problems: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """True if every expectation was met."""
        return not self.problems


def judged(case: Case, result: Result) -> Verdict:
    """Return the verdict of a test about a build. A failure that no other failure has caused is a problem, unless an
    expectation names it.
    """
    texts = [each.text for each in case.expectations if isinstance(each, Fails)]
    problems = [
        f"the build failed: {failure}"
        for failure in result.failed.values()
        if failure.is_primary and not any(text in str(failure) for text in texts)
    ]
    for expectation in case.expectations:
        problems += _problems(expectation, result)
    more = len(problems) - MOST_PROBLEMS
    return Verdict(case, tuple(problems[:MOST_PROBLEMS] + ([f"and {more} more problems"] if more > 0 else [])))


def _problems(expectation: Expectation, result: Result) -> Iterator[str]:
    objects = result.objects
    match expectation:
        case Matches(who, fields):
            found = _found(who, objects)
            if len(found) == 1:
                hides = found[0].id.kind == SECRET
                yield from (f"{who}: {each}" for each in _differences(fields, found[0].object, "", hides=hides))
            elif found:
                yield f"{who}: several objects have this name: {', '.join(shown(each.id) for each in found)}; name the namespace"
            else:
                yield f"{who}: is not built{_close(who, objects)}"
        case Absent(who):
            if _found(who, objects):
                yield f"{who}: is built, but was expected to be absent"
        case Count(kind, count):
            number = sum(not kind or _has_kind(each, kind) for each in objects)
            if number != count:
                yield f"{kind or 'objects'}: expected {count}, found {number}"
        case Fails(text):
            if not any(text in str(failure) for failure in result.failed.values()):
                instead = "it failed with other messages" if result.failed else "it succeeded"
                yield f"expected the build to fail with the text {text!r}; {instead}"
        case _:
            assert_never(expectation)


def _found(who: ObjectName, objects: Sequence[Manifest]) -> list[Manifest]:
    return [
        each
        for each in objects
        if each.id.name == who.name and _has_kind(each, who.kind) and who.namespace in {"", each.id.namespace}
    ]


def _has_kind(manifest: Manifest, kind: str) -> bool:
    """Return whether an object has a kind, given as ``Deployment`` or ``Deployment.apps``."""
    return kind in {manifest.id.kind, manifest.id.kind.partition(".")[0]}


def _close(who: ObjectName, objects: Sequence[Manifest]) -> str:
    names = sorted({each.id.name for each in objects if _has_kind(each, who.kind)})
    return f"; built with this kind: {', '.join(names)[:MOST_SHOWN]}" if names else "; nothing of this kind is built"


def _differences(expected: JsonValue, found: JsonValue, path: str, *, hides: bool) -> Iterator[str]:
    """Yield a line for each difference. If ``hides`` is true, the values are not shown, because they belong to a Secret."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key, value in expected.items():
            inner = f"{path}.{key}" if path else key
            if value is None:
                if found.get(key) is not None:
                    yield f"{inner}: expected nothing, found {_text(found[key], hides=hides)}"
            else:
                yield from _differences(value, found.get(key), inner, hides=hides)
    elif isinstance(expected, list) and isinstance(found, list):
        yield from _list_differences(expected, found, path, hides=hides)
    elif not _equal(expected, found):
        yield f"{path}: expected {_text(expected, hides=hides)}, found {_text(found, hides=hides)}"


def _list_differences(expected: list[JsonValue], found: list[JsonValue], path: str, *, hides: bool) -> Iterator[str]:
    names = [each.get("name") if isinstance(each, dict) else None for each in expected]
    if expected and all(isinstance(name, str) for name in names):
        by_name: dict[JsonValue, JsonObject] = {}
        for each in found:
            if isinstance(each, dict) and isinstance(each.get("name"), str):
                by_name.setdefault(each["name"], each)
        for name, value in zip(names, expected, strict=True):
            if name in by_name:
                yield from _differences(value, by_name[name], f"{path}[name={name}]", hides=hides)
            else:
                yield f"{path}: expected an item with the name {name!r}, found none"
        return
    if len(expected) != len(found):
        yield f"{path}: expected {len(expected)} items, found {len(found)}"
        return
    for number, (one, other) in enumerate(zip(expected, found, strict=True)):
        yield from _differences(one, other, f"{path}[{number}]", hides=hides)


def _equal(one: JsonValue, other: JsonValue) -> bool:
    """Return whether two values are equal as JSON: ``1`` and ``1.0`` are, ``1`` and ``true`` are not."""
    return canonical_json(one) == canonical_json(other)


def _text(value: JsonValue, *, hides: bool) -> str:
    if value is None:
        return "nothing"
    if hides:
        return "a value that is hidden"
    text = canonical_json(value).decode()
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
