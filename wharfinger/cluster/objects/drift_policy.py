"""The policy for drift: whether fields of our objects that another manager changed are corrected, reported or ignored.

A policy has a mode and rules about the fields to ignore, in the form that Flux has in ``driftDetection`` of its HelmRelease. A
rule has JSON pointers, and a target that selects the objects::

    mode: warn
    ignore:
      - paths: [/spec/replicas]
        target: {kind: Deployment, name: "web-.*"}

``group``, ``version``, ``kind``, ``name`` and ``namespace`` are regular expressions in Go's syntax, matched in linear time. Each
must match the complete text; a missing expression matches everything. A pointer selects the field and all below it. A segment
``*``, which Flux does not have, selects every member or item.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find_list, find_object, find_str, type_name
from wharfinger.formats.schemas.patterns import PatternError, matcher, read_pattern
from wharfinger.kube.resource import kind_of, name_of, namespace_of, split_api_version
from wharfinger.kube.selectors import LabelSelector, SelectorError, parse_label_selector

MAX_RULES: Final = 100
MAX_PATHS: Final = 100
MAX_POINTER: Final = 1_024
"""The largest number of characters of one pointer."""
ANY: Final = "*"
"""A segment that matches every member of an object and every item of a list."""


class DriftPolicyError(FormatError):
    """A drift policy is not valid."""


class DriftMode(StrEnum):
    """The treatment of drift: fields that the daemon applied, and that another manager has changed since."""

    OFF = "off"
    """Drift is not detected."""
    WARN = "warn"
    """Drift is reported and not corrected."""
    CORRECT = "correct"
    """Drift is reported and corrected."""


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """Fields that other managers may change. ``paths`` are the fields, as JSON pointers ("" is the whole object). The attributes
    from ``group`` to ``annotation_selector`` select the objects to which the rule applies.

    Only built-in rules have ``subresource``, ``by`` and ``not_by``. Such a rule covers only writes through that subresource, by
    managers whose complete name matches ``by`` and not ``not_by``.
    """

    paths: tuple[str, ...]
    group: str = ""
    version: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    label_selector: str = ""
    annotation_selector: str = ""
    subresource: str = ""
    by: str = ""
    not_by: str = ""

    def matches_object(self, obj: JsonObject) -> bool:
        """Return whether the rule applies to this object."""
        api_version, kind = kind_of(obj)
        group, version = split_api_version(api_version)
        texts = (
            (self.group, group),
            (self.version, version),
            (self.kind, kind),
            (self.name, name_of(obj)),
            (self.namespace, namespace_of(obj)),
        )
        return all(not pattern or fits(pattern, text) for pattern, text in texts) and (
            _holds(self.label_selector, obj, "labels") and _holds(self.annotation_selector, obj, "annotations")
        )

    def matches_writer(self, manager: str, subresource: str) -> bool:
        """Return whether the rule applies to writes of this manager through this subresource; ``manager`` is "" if it is
        unknown."""
        if self.subresource and self.subresource != subresource:
            return False
        return (not self.by or fits(self.by, manager)) and not (self.not_by and fits(self.not_by, manager))


@dataclass(frozen=True, slots=True)
class DriftPolicy:
    """The treatment of drift of one release's objects, in addition to the rules of :mod:`wharfinger.cluster.drift.ignored`."""

    mode: DriftMode = DriftMode.CORRECT
    ignore: tuple[IgnoreRule, ...] = ()


def read_drift_policy(value: JsonValue, what: str) -> DriftPolicy:
    """Read a policy as users write it; ``what`` names the policy in errors. Raises FormatError."""
    said = _only(as_object(value, what), what, {"mode", "ignore"})
    mode = find_str(said, "mode", default=DriftMode.CORRECT)
    if mode not in set(DriftMode):
        raise DriftPolicyError(
            f"{what}.mode: {mode!r:.80} is not one of {', '.join(known.value for known in DriftMode)}"
        )
    rules = find_list(said, "ignore")
    if len(rules) > MAX_RULES:
        raise DriftPolicyError(f"{what}.ignore: {len(rules)} rules are over the limit of {MAX_RULES}")
    return DriftPolicy(
        DriftMode(mode), tuple(_read_rule(rule, f"{what}.ignore[{at}]") for at, rule in enumerate(rules))
    )


def fits(pattern: str, text: str) -> bool:
    """Return whether a pattern (:func:`~wharfinger.formats.schemas.patterns.read_pattern`) matches the whole text."""
    return matcher(_whole(pattern)).is_valid(text)


def _read_rule(value: JsonValue, what: str) -> IgnoreRule:
    said = _only(as_object(value, what), what, {"paths", "target"})
    paths = find_list(said, "paths")
    if not 1 <= len(paths) <= MAX_PATHS:
        raise DriftPolicyError(f"{what}.paths: one to {MAX_PATHS} JSON pointers are needed, not {len(paths)}")
    target = _only(find_object(said, "target"), f"{what}.target", {*_TEXTS, *_SELECTORS})
    return IgnoreRule(
        tuple(_read_pointer(path, f"{what}.paths[{at}]") for at, path in enumerate(paths)),
        **{name: _read_pattern(find_str(target, name), f"{what}.target.{name}") for name in _TEXTS},
        **{
            attribute: _read_selector(find_str(target, name), f"{what}.target.{name}")
            for name, attribute in _SELECTORS.items()
        },
    )


_TEXTS: Final = ("group", "version", "kind", "name", "namespace")
_SELECTORS: Final[Mapping[str, str]] = {
    "labelSelector": "label_selector",
    "annotationSelector": "annotation_selector",
}


def _read_pattern(pattern: str, what: str) -> str:
    try:
        _whole(pattern)
    except PatternError as error:
        raise DriftPolicyError(f"{what}: {error}") from error
    return pattern


def _read_selector(text: str, what: str) -> str:
    try:
        _selector(text)
    except SelectorError as error:
        raise DriftPolicyError(f"{what}: {error}") from error
    return text


def _read_pointer(value: JsonValue, what: str) -> str:
    if not isinstance(value, str):
        raise DriftPolicyError(f"{what}: expected a JSON pointer such as /spec/replicas, found {type_name(value)}")
    if len(value) > MAX_POINTER:
        raise DriftPolicyError(f"{what}: a pointer of {len(value)} characters is over the limit of {MAX_POINTER}")
    if value and not value.startswith("/"):
        raise DriftPolicyError(
            f"{what}: {value!r:.100} is not a JSON pointer: a pointer begins with /, such as /spec/replicas"
        )
    if "~" in value.replace("~0", "").replace("~1", ""):
        raise DriftPolicyError(
            f"{what}: {value!r:.100} is not a JSON pointer: in a pointer, ~ is written ~0, and / in a name is written ~1"
        )
    return value


def _only(said: JsonObject, what: str, known: set[str]) -> JsonObject:
    if unknown := sorted(said.keys() - known):
        raise DriftPolicyError(f"{what}: {unknown[0]!r:.80} is not one of {', '.join(sorted(known))}")
    return said


@lru_cache(maxsize=512)
def _whole(pattern: str) -> str:
    # compile the pattern alone first, because the text around it below could complete an unbalanced pattern
    read_pattern(pattern)
    return read_pattern(f"^(?:{pattern})$")


@lru_cache(maxsize=512)
def _selector(text: str) -> LabelSelector:
    return parse_label_selector(text)


def _holds(selector: str, obj: JsonObject, member: str) -> bool:
    labels = find_object(obj, "metadata", member) if selector else {}
    return all(term.holds(labels) for term in _selector(selector).requirements)
