"""A package's settings, resolved with all objects to which they refer. Pure.

The settings have layers, each of which overrides the earlier layers: first the entries of ``settingsFrom`` in their order,
then ``spec.settings``. JSON objects are merged key by key; all other values are replaced. The texts from Secrets are recorded in
`ResolvedSettings.secrets`, because they must not be shown in a status, in a log or on the debug socket.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    as_object,
    checksum,
    find,
    find_object,
    find_str,
    type_name,
)
from wharfinger.formats.merge_patch import overlaid
from wharfinger.formats.redaction.redaction_text import SHORTEST_SECRET
from wharfinger.formats.yaml.reader import YamlError, read_yaml
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.resources.resources import PackageSpec, SettingsSource
from wharfinger.runtime.resources.secret_data import secret_data


class SettingsSourceError(Exception):
    """A source in ``settingsFrom`` is missing or cannot be read; a user has to correct the source or the reference."""


@dataclass(frozen=True, slots=True)
class ResolvedSettings:
    """The settings; ``secrets`` are texts from Secrets, for masking; ``hidden`` are the paths of these texts.

    ``version`` is the version of the settings schema for which they are written; 0 means the newest.
    """

    settings: JsonObject
    secrets: tuple[str, ...] = field(default=(), repr=False)
    hidden: frozenset[tuple[str, ...]] = frozenset()
    version: int = 0
    _checksum: list[str] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def subject(self) -> str:
        """The words that messages use for the settings: the field ``spec.settings``, or just "settings" if some of them come
        from Secrets and not from that field.
        """
        return "settings" if self.hidden else "spec.settings"

    @property
    def checksum(self) -> str:
        """Return the checksum of the settings, which is computed only once. Missing and empty settings have the same checksum."""
        if not self._checksum:
            self._checksum.append(checksum(self.settings))
        return self._checksum[0]


def resolve_settings(spec: PackageSpec, objects: Mapping[ObjectKey, JsonObject | None]) -> ResolvedSettings:
    """Return the settings of ``spec``. Raises SettingsSourceError.

    ``objects`` has the sources that ``settingsFrom`` names; a missing source is None.
    """
    merged: JsonObject = {}
    secrets: set[str] = set()
    hidden: set[tuple[str, ...]] = set()
    for number, entry in enumerate(spec.settings_from):
        layer = _layer(entry, objects.get(entry.source), f"spec.settingsFrom[{number}]")
        if entry.is_secret:
            for path, value in _leaves(layer):
                hidden.add(path)
                secrets |= _texts(value)
        merged = _overlaid(merged, layer, f"spec.settingsFrom[{number}]")
    settings = _overlaid(merged, spec.settings, "spec.settings")
    return ResolvedSettings(settings, tuple(sorted(secrets)), frozenset(hidden), spec.directives.settings_version)


def carried_over(before: ResolvedSettings, settings: JsonObject, version: int) -> ResolvedSettings:
    """Mark the secrets in ``settings``, which are the result of a conversion of ``before`` to ``version``.

    A conversion program may split a text from a Secret, and put the pieces anywhere. So if the earlier settings had hidden
    values, all values are hidden now, except visible values that are unchanged at the same path.
    """
    if not before.hidden or settings == before.settings:
        return ResolvedSettings(settings, before.secrets, before.hidden, version)
    hidden = frozenset(_moved(before.settings, settings, before.hidden))
    secrets = {*before.secrets, *texts_at(settings, hidden)}
    return ResolvedSettings(settings, tuple(sorted(secrets)), hidden, version)


def _moved(
    before: JsonValue, after: JsonValue, hidden: frozenset[tuple[str, ...]], path: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """Yield the paths of values that were hidden before, or that are new or changed."""
    if path in hidden:
        yield path
    elif isinstance(before, dict) and isinstance(after, dict):
        for key, inner in after.items():
            yield from _moved(before.get(key), inner, hidden, (*path, key))
    elif before != after:
        yield path


def _overlaid(below: JsonObject, above: JsonObject, where: str) -> JsonObject:
    try:
        return overlaid(below, above)
    except FormatError as error:
        raise SettingsSourceError(f"{where}: {error}") from error


def texts_at(value: JsonValue, paths: Iterable[tuple[str | int, ...]]) -> frozenset[str]:
    """Return the texts at and below these paths, in all forms in which they may occur.

    Texts that are too short to mask are left out.
    """
    found = (leaf for path in paths for _, leaf in _leaves(find(value, *path)))
    return frozenset(text for leaf in found for text in _texts(leaf))


def _texts(leaf: JsonValue) -> frozenset[str]:
    """Return the forms in which a value may occur in a text, without those that are too short to mask.

    A text has one form. A number has the form of JSON and the form of Go's templates (``98765432``, ``9.8765432e+07``).
    """
    forms: set[str] = set()
    if isinstance(leaf, str):
        forms.add(leaf)
    elif isinstance(leaf, int | float) and not isinstance(leaf, bool) and len(str(leaf)) >= SHORTEST_SECRET:
        mantissa, _, exponent = f"{float(leaf):.16e}".partition("e")
        forms |= {str(leaf), f"{mantissa.rstrip('0').rstrip('.')}e{exponent}"}
    return frozenset(form for form in forms if len(form) >= SHORTEST_SECRET)


def _layer(entry: SettingsSource, obj: JsonObject | None, where: str) -> JsonObject:
    what = f"{entry.source.resource.kind} {entry.source.namespace}/{entry.source.name}"
    if obj is None:
        if entry.optional:
            return {}
        raise SettingsSourceError(f"{where}: {what} does not exist; create it, or set optional: true")
    try:
        text = _text(entry, obj)
        if text is None:
            if entry.optional:
                return {}
            raise SettingsSourceError(f"{where}: {what} has no key {entry.key!r}")
        if not entry.path:
            found = read_yaml(text, what=entry.key) or {}
            if not isinstance(found, dict):
                told = f"expected an object of settings, found {type_name(found)}"
                raise SettingsSourceError(f"{where}: {what}: {entry.key}: {told}")
            return found
        value: JsonValue = text.decode()
    except FormatError as error:
        said = _unreadable(error) if entry.is_secret else str(error).removeprefix(f"{entry.key}:").lstrip()
        raise SettingsSourceError(f"{where}: {what}: {entry.key}: {said}") from error
    except UnicodeDecodeError as error:
        raise SettingsSourceError(f"{where}: {what}: {entry.key}: not text") from error
    for name in reversed(entry.path):
        value = {name: value}
    return as_object(value, where)


def _unreadable(error: FormatError) -> str:
    """Return the place of an error in the text of a Secret, without the error's message, which may quote the secret text."""
    if not isinstance(error, YamlError):
        return "expected base64, as in all data of Secrets"
    place = "" if error.line is None else f"line {error.line}, column {error.column}: "
    return (
        f"{place}cannot be read as YAML (the parser's message is not shown, because it may quote the Secret; "
        "`wharfinger package check --settings` shows it)"
    )


def _text(entry: SettingsSource, obj: JsonObject) -> bytes | None:
    if entry.is_secret:
        return secret_data(obj).get(entry.key)
    data = find_object(obj, "data")
    return find_str(obj, "data", entry.key).encode() if entry.key in data else None


def _leaves(value: JsonValue, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], JsonValue]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    elif isinstance(value, list):
        for inner in value:
            for _, leaf in _leaves(inner):
                yield path, leaf
    else:
        yield path, value
