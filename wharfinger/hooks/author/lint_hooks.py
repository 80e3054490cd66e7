"""Checks of the configurations that hooks print, with the lines of the printed documents.

A hook is run with ``--config``, as the daemon runs it. The line of a finding is a line of the printed document, and its file is
the command that prints the document, such as ``hooks/x.sh --config``. Messages of the hook contract name a field without the
indexes of lists. To find the binding that a message is about, each binding is also checked alone.

Lint also reports probable mistakes that the daemon accepts: superfluous entries in includeSnapshotsFrom, snapshots that are never
read, and hooks that are never run.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, as_object, find_list, find_str
from wharfinger.formats.yaml.lines import Lines, yaml_lines
from wharfinger.formats.yaml.lines import Path as Place
from wharfinger.formats.yaml.reader import YamlError, read_yaml
from wharfinger.hooks.author.lint_scripts import MAX_SCRIPT
from wharfinger.hooks.author.lint_sources import PLACE, LintFinding, finding
from wharfinger.hooks.author.local_package import filter_problems
from wharfinger.hooks.config.bindings import HookConfig, HookScope, KubernetesBinding
from wharfinger.hooks.config.config import check_hook_config
from wharfinger.hooks.config.problems import HookConfigError
from wharfinger.hooks.config.webhooks import CONVERSION, MUTATING, VALIDATING
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.config_reader import BATCH_ARGUMENTS, CONFIG_ARGUMENTS, ConfigReader
from wharfinger.hooks.running.discovery import Hook, HookKind, read_hooks
from wharfinger.hooks.running.hook_files import HookFile, HookFiles
from wharfinger.hooks.watching.filters import Filters
from wharfinger.packages.author.package_check import Severity

_NO_LINES: Final = Lines({})
_SNAPSHOTS: Final = b"snapshots"


@dataclass(frozen=True, slots=True)
class Printed:
    """The document that a hook printed, and the line in which each of its values stands."""

    name: str
    document: JsonObject
    lines: Lines

    def at(self, path: Place, severity: Severity, message: str) -> LintFinding:
        """Return a finding about one of the document's values."""
        return finding(self.name, self.lines.of(path), severity, message)


async def lint_hooks(files: HookFiles, reader: ConfigReader, filters: Filters) -> list[LintFinding]:
    """Check all hooks of a package. A hook that does not print its configuration causes a finding."""
    found: list[LintFinding] = []
    for file in files.hooks:
        found += await _lint_hook(file, reader, filters)
    return found


async def _lint_hook(file: HookFile, reader: ConfigReader, filters: Filters) -> list[LintFinding]:
    try:
        answer = await reader.config_of(file)
    except HookError as error:
        return [finding(file.name, 1, Severity.ERROR, _without_name(error))]
    try:
        hooks = await read_hooks(file, reader)
    except HookConfigError as error:
        return list(_refused(file, answer, error))
    printed = _printed(file, answer)
    found: list[LintFinding] = []
    for hook in hooks:
        for number, why in await filter_problems(hook, filters):
            found.append(printed.at(_path(hook, "kubernetes", number, "jqFilter"), Severity.ERROR, _named(hook, why)))
        found += _oddities(hook, printed)
    if not file.batch and not await trio.to_thread.run_sync(_may_read_snapshots, file):
        found += _unread_snapshots(printed)
    return found


def _may_read_snapshots(file: HookFile) -> bool:
    """Return False if the hook is a script without the word "snapshots"; any other hook may read snapshots. Blocking."""
    path = Path(file.argv[0]) if file.argv else file.executable
    with suppress(OSError), path.open("rb") as opened:
        text = opened.read(MAX_SCRIPT + 1)
        return not text.startswith(b"#!") or len(text) > MAX_SCRIPT or _SNAPSHOTS in text
    return True


def _unread_snapshots(printed: Printed) -> Iterator[LintFinding]:
    for key in ("kubernetes", "schedule", VALIDATING, MUTATING, CONVERSION):
        for number, binding in enumerate(find_list(printed.document, key)):
            if find_list(binding, "includeSnapshotsFrom"):
                why = (
                    "includeSnapshotsFrom: the hook reads no snapshots; remove the field, unless a file that the hook "
                    "sources does"
                )
                yield printed.at((key, number, "includeSnapshotsFrom"), Severity.WARNING, why)


def _printed(file: HookFile, answer: bytes) -> Printed:
    document: JsonObject = {}
    with suppress(FormatError):
        document = as_object(read_yaml(answer, what="it"), "it")
    lines = yaml_lines(answer)
    asked = " ".join(BATCH_ARGUMENTS if file.batch else CONFIG_ARGUMENTS)
    return Printed(f"{file.name} {asked}", document, lines[0] if lines else _NO_LINES)


def _refused(file: HookFile, answer: bytes, error: HookConfigError) -> Iterator[LintFinding]:
    printed = _printed(file, answer)
    try:
        read_yaml(answer, what="it")
    except YamlError as broken:
        yield finding(
            printed.name, broken.line or 1, Severity.ERROR, PLACE.sub("", str(broken).partition(": ")[2], count=1)
        )
        return
    if file.batch:
        named = error.hook.removeprefix(f"{file.name}:")
        for problem in error.problems:
            yield printed.at(_batch_path(error), Severity.ERROR, f"{named}: {problem}")
        return
    places = _Places(printed)
    for problem in error.problems:
        yield printed.at(places.of(problem), Severity.ERROR, problem)


class _Places:
    """The places of problems in a printed document.

    If several bindings have the same problem, each call of `of` with this problem returns the place in another binding.
    """

    def __init__(self, printed: Printed) -> None:
        self._lines = printed.lines
        self._alone = dict(_problems_alone(printed.document))

    def of(self, problem: str) -> Place:
        keys = tuple(problem.partition(" ")[0].rstrip(":").strip("'").split("."))
        for binding, problems in self._alone.items():
            if problem in problems:
                problems.remove(problem)
                return self._below(binding, keys) or binding
        return self._below((), keys)

    def _below(self, binding: Place, keys: tuple[str, ...]) -> Place:
        """Return the path of the value below ``binding`` to which these keys lead; ``keys`` contains no indexes of lists.

        If there is no such value, the last keys are left out one by one. If not even the first key exists, () is returned.
        """
        while keys:
            for path in self._lines.matching(keys):
                if path[: len(binding)] == binding:
                    return path
            keys = keys[:-1]
        return ()


def _problems_alone(document: JsonObject) -> Iterator[tuple[Place, list[str]]]:
    """Yield the place of each faulty binding, with the problems that are found if the document contains only this binding."""
    version = {key: document[key] for key in ("configVersion",) if key in document}
    for key, bindings in document.items():
        if not isinstance(bindings, list):
            continue
        for number, binding in enumerate(bindings):
            for scope in HookScope:
                try:
                    check_hook_config({**version, key: [binding]}, hook="it", scope=scope)
                except HookConfigError as error:
                    yield (key, number), list(error.problems)
                    break


def _oddities(hook: Hook, printed: Printed) -> Iterator[LintFinding]:
    """Yield findings about settings that the contract allows, but that probably are mistakes of the author."""
    config = hook.config
    for warning in config.warnings:
        yield printed.at(_path(hook, warning.partition(".")[0]), Severity.WARNING, _named(hook, warning))
    if hook.kind is HookKind.SETTINGS_CHECK:
        return
    if _runs_never(config):
        yield printed.at(
            _path(hook), Severity.WARNING, _named(hook, "no event runs the hook: none of its bindings causes a run")
        )
    if hook.kind is not HookKind.SHELL:
        return
    included = {name for name in _included(config) if name}
    for number, binding in enumerate(find_list(printed.document, "kubernetes")):
        where: Place = ("kubernetes", number)
        name = find_str(binding, "name", default="kubernetes")
        if _is_silent(config.kubernetes[number]) and name not in included and not _has_all_snapshots(config):
            why = f"the binding {name!r} is useless: no event of it runs the hook, and no binding includes its snapshot"
            yield printed.at(where, Severity.WARNING, why)
    for key in ("kubernetes", "schedule"):
        for number, binding in enumerate(find_list(printed.document, key)):
            yield from _unused_snapshots(config, printed, (key, number), find_str(binding, "group"))


def _unused_snapshots(config: HookConfig, printed: Printed, where: Place, group: str) -> Iterator[LintFinding]:
    """Yield a finding for each name in includeSnapshotsFrom that is a duplicate, or that the group includes anyway. Yield one
    finding for the whole list if no event runs the hook for the binding.
    """
    key, number = where[0], where[1]
    names = [str(name) for name in find_list(printed.document, key, number, "includeSnapshotsFrom")]
    grouped = {binding.name for binding in config.kubernetes if group and binding.group == group}
    seen: set[str] = set()
    for index, name in enumerate(names):
        path = (*where, "includeSnapshotsFrom", index)
        if name in seen:
            yield printed.at(path, Severity.WARNING, f"includeSnapshotsFrom: {name!r} is listed twice")
        elif name in grouped:
            why = f"includeSnapshotsFrom: {name!r} is already included by the group {group!r}; remove it from the list"
            yield printed.at(path, Severity.WARNING, why)
        seen.add(name)
    watched = key == "kubernetes" and isinstance(number, int)
    if watched and names and _is_silent(config.kubernetes[int(number)]):
        why = "includeSnapshotsFrom: no event runs the hook for this binding, so the snapshots are never read; leave it out"
        yield printed.at((*where, "includeSnapshotsFrom"), Severity.WARNING, why)


def _is_silent(binding: KubernetesBinding) -> bool:
    """Return whether the binding never runs the hook, and only keeps a snapshot for other bindings."""
    return not binding.verbs and not binding.on_synchronization


def _included(config: HookConfig) -> Iterator[str]:
    for watched in config.kubernetes:
        yield from watched.include_snapshots_from
    for timed in config.schedules:
        yield from timed.include_snapshots_from
    for asked in (*config.validating, *config.mutating):
        yield from asked.include_snapshots_from
    for converted in config.conversions:
        yield from converted.include_snapshots_from


def _has_all_snapshots(config: HookConfig) -> bool:
    """Return whether the hook has a binding such as beforeHelm or afterAll, whose runs get every snapshot."""
    orders = (config.before_helm, config.after_helm, config.before_delete_helm, config.after_delete_helm)
    return any(order is not None for order in (*orders, config.before_all, config.after_all))


def _runs_never(config: HookConfig) -> bool:
    runs = config.on_startup is not None or _has_all_snapshots(config) or bool(config.schedules)
    watched = not all(map(_is_silent, config.kubernetes))
    return not (runs or watched or config.validating or config.mutating or config.conversions)


def _path(hook: Hook, *steps: str | int) -> Place:
    """Return the path of a value of the hook's configuration in the document that the executable prints."""
    if hook.kind is HookKind.BATCH:
        return ("hooks", int(hook.argv[-1]), *steps)
    return ("readiness", *steps) if hook.kind is HookKind.READINESS else steps


def _batch_path(error: HookConfigError) -> Place:
    index = error.hook.rpartition(":")[2]
    if error.hook.endswith("-readiness"):
        return ("readiness",)
    return ("hooks", int(index)) if index.isdigit() else ()


def _named(hook: Hook, message: str) -> str:
    return message if hook.kind is HookKind.SHELL else f"{hook.name}: {message}"


def _without_name(error: HookError) -> str:
    return str(error).removeprefix(f"hook {error.hook}: ")
