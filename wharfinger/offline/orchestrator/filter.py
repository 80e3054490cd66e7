"""Filters, which choose objects of a tree by kind, namespace, name, label and path. Pure.

A filter is written as ``kind=HelmRelease,namespace=apps,name=web-*``, or as ``HelmRelease/web`` or ``apps/HelmRelease/web``. A
key may be repeated with other values. An object matches if, for each key in the filter, it has at least one of the values that
are given for this key. Values are patterns, in which ``*`` matches any characters, and ``?`` matches one; KEY of a label is no
pattern.

=========  ========================================================================================================
kind       a kind in any case, with its group or without: ``helmrelease``, ``HelmRelease.helm.toolkit.fluxcd.io``
namespace  the namespace in which the object would be applied
name       the name of the object
label      ``label=KEY`` or ``label=KEY=VALUE``
path       the file that declares the object or its producer, or a folder around that file; relative to the root
=========  ========================================================================================================
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from wharfinger.formats.listing import listed
from wharfinger.offline.discovery.build_files import is_below, normal_path
from wharfinger.offline.store.kinds import SCHEDULABLE
from wharfinger.runtime.fixpoint.model import Id

KEYS: Final = ("kind", "namespace", "name", "label", "path")
MOST_NAMED: Final = 5
_PATTERN: Final = frozenset("*?[")
_NODES: Final = frozenset(each.casefold() for kind in SCHEDULABLE for each in (kind, kind.partition(".")[0]))


class FilterError(Exception):
    """The text of a filter is not valid."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An object that a filter may choose; ``file`` is "" if no file is known for the object or its producers."""

    id: Id
    labels: Mapping[str, str]
    file: str = ""


@dataclass(frozen=True, slots=True)
class Filter:
    """One filter. An object passes the filter if, for each key in it, the object matches one of the key's values."""

    text: str
    terms: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def names_nodes(self) -> bool:
        """True if the filter names kinds, without wildcards, and all of them have a controller, such as HelmRelease."""
        kinds = dict(self.terms).get("kind", ())
        return bool(kinds) and all(each.casefold() in _NODES for each in kinds)

    def matches(self, candidate: Candidate) -> bool:
        """Return whether the filter chooses an object."""
        return all(any(_has(candidate, key, value) for value in values) for key, values in self.terms)

    def nearest(self, candidates: Iterable[Candidate]) -> str:
        """Return why the filter does not choose any of these objects, with the most similar values of the objects."""
        left = list(candidates)
        applied: list[str] = []
        for key, values in self.terms:
            matching = [each for each in left if any(_has(each, key, value) for value in values)]
            if not matching:
                among = f" among those with {','.join(applied)}" if applied else ""
                return f"no object has the {key} {' or '.join(map(repr, values))}{among}{_hint(left, key, values)}"
            left = matching
            applied += [f"{key}={value}" for value in values]
        return "there is no object"


def parse_filter(text: str) -> Filter:
    """Read a filter. Raises FilterError."""
    if "=" not in text:
        return _named(text)
    found: dict[str, list[str]] = {}
    for part in text.split(","):
        key, sign, value = (each.strip() for each in part.partition("="))
        if key not in KEYS or not sign or not value:
            close = difflib.get_close_matches(key, KEYS, 1)
            hint = f"; did you mean {close[0]}?" if close and key not in KEYS else ""
            raise FilterError(
                f"{text!r}: expected KEY=VALUE with one of the keys {', '.join(KEYS)}, found {part!r}{hint}"
            )
        if key == "path":
            normal = normal_path(value)
            if normal is None:
                raise FilterError(f"{text!r}: the path {value!r} leads out of the root; name a path below the root")
            value = normal
        found.setdefault(key, []).append(value)
    return Filter(text, tuple((key, tuple(found[key])) for key in KEYS if key in found))


def _named(text: str) -> Filter:
    """Read ``KIND``, ``KIND/NAME`` or ``NAMESPACE/KIND/NAME``. Raises FilterError."""
    parts = [part.strip() for part in text.split("/")]
    if not all(parts) or len(parts) > len(("namespace", "kind", "name")):
        raise FilterError(
            f"{text!r}: expected KIND, KIND/NAME, NAMESPACE/KIND/NAME, or pairs KEY=VALUE separated by commas"
        )
    keys = ("namespace", "kind", "name") if len(parts) > 2 else ("kind", "name")
    given = dict(zip(keys, parts, strict=False))
    return Filter(text, tuple((key, (given[key],)) for key in KEYS if key in given))


def unmatched(filters: Sequence[Filter], candidates: Sequence[Candidate]) -> tuple[Filter, ...]:
    """Return the filters that do not choose any of these objects."""
    return tuple(each for each in filters if not any(map(each.matches, candidates)))


def _hint(candidates: Sequence[Candidate], key: str, values: Sequence[str]) -> str:
    """Return a hint that names some values of the objects for a key; "" if there are none.

    If some of them are similar to the values of the filter, only these are named.
    """
    known = sorted({text for each in candidates for text in _texts(each, key)})
    close = [text for value in values for text in difflib.get_close_matches(value, known, MOST_NAMED)]
    if close:
        return f"; nearest: {listed(dict.fromkeys(close), MOST_NAMED)}"
    return f"; there are: {listed(known, MOST_NAMED)}" if known else ""


def _has(candidate: Candidate, key: str, pattern: str) -> bool:
    if key == "kind":
        return any(fnmatchcase(text.casefold(), pattern.casefold()) for text in _kinds(candidate))
    if key == "path":
        return bool(candidate.file) and (
            is_below(candidate.file, pattern) or (bool(_PATTERN & {*pattern}) and fnmatchcase(candidate.file, pattern))
        )
    if key == "label":
        name, sign, value = pattern.partition("=")
        found = candidate.labels.get(name)
        return found is not None and (not sign or fnmatchcase(found, value))
    return fnmatchcase(candidate.id.namespace if key == "namespace" else candidate.id.name, pattern)


def _kinds(candidate: Candidate) -> tuple[str, str]:
    return candidate.id.kind, candidate.id.kind.partition(".")[0]


def _texts(candidate: Candidate, key: str) -> tuple[str, ...]:
    """Return the texts that an object has under a key of filters, such as ``name``, for hints. An empty text is left out."""
    if key == "label":
        return tuple(f"{name}={value}" for name, value in candidate.labels.items())
    text = {
        "kind": candidate.id.kind.partition(".")[0],
        "namespace": candidate.id.namespace,
        "name": candidate.id.name,
        "path": candidate.file,
    }[key]
    return (text,) if text else ()
