"""Write the pages in docs/reference from the code: commands, kinds, metrics and reasons. `make reference` runs it.

A test fails if the pages differ from the output of this script.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from wharfinger.__main__ import build_parser
from wharfinger.formats.json.value import JsonObject, as_object, find, find_list, find_object, find_str
from wharfinger.hooks.metrics.hook_metrics import HOOK_METRICS
from wharfinger.runtime.inspection.daemon_metrics import DAEMON_METRICS
from wharfinger.runtime.resources.custom_resources import own_crds
from wharfinger.runtime.status.reasons import Again, Reason

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "docs" / "reference"
NOTE = "<!-- Made by tools/docs/generate_reference.py; `make reference` writes it anew. -->\n"


_NO_PROBLEM = {
    Reason.PENDING: "work on the package has not begun yet",
    Reason.READY: "the package is ready",
    Reason.IDLE: "no work is in progress",
    Reason.STALLED: "the package is not reconciled, because a failure has to be resolved first",
    Reason.NOT_STALLED: "the package is not stalled",
}
"""The meanings of the reasons that have no text of their own in a status."""
_AGAIN = {
    Again.ITSELF: "automatically, with growing pauses",
    Again.OTHERS: "automatically, when the object or the package that causes the problem changes",
    Again.CHANGE: "when an input of the package changes, after ten minutes, or on request",
    Again.BY_ERROR: "automatically if a retry can help; otherwise when an input changes, after ten minutes, or on request",
    Again.NOTHING: "(not a failure)",
}
"""The events that lead to another attempt, in words."""
_AGAIN_OF = {
    Reason.KUBERNETES_UNMET: "when the resource changes, or after a restart of the daemon",
    Reason.PLATFORM_UNMET: "when the resource changes, or after a restart of the daemon",
    Reason.VERSION_LOOKUP_FAILED: "when the resource changes, or after a restart of the daemon",
    Reason.DEPENDENCY_CYCLE: "when the resource changes, or on request",
    Reason.DYNAMICALLY_DISABLED: "when spec.enabled changes",
    Reason.DISABLED_BY_DEFAULT: "when the resource changes, or when a global hook enables the package",
    Reason.DISABLED_BY_HOOK: "when spec.enabled changes, or when the hook enables the package",
    Reason.DISABLED_BY_SCRIPT: "when an input of the script changes, such as the settings, or on request",
    Reason.SCRIPT_ERROR: "when an input of the script changes, every ten minutes, or on request",
    Reason.SUSPENDED: "when spec.suspend changes",
    Reason.NO_RECONCILIATION: "when spec.maintenance changes",
    Reason.ROLLED_BACK: "when the resource changes, or on request",
    Reason.WORKLOAD_FAILED: "automatically, when the workload changes, and after growing pauses",
    Reason.INTERNAL: (
        "after a bug while the daemon reads the resource: automatically, with growing pauses; after a bug in a task: when an "
        "input of the package changes, after ten minutes, or on request"
    ),
}
"""The events that lead to another attempt, for reasons for which the text in _AGAIN is not correct."""


def pages() -> dict[str, str]:
    """Return the text of each page by its name."""
    return {"commands.md": commands(), "kinds.md": kinds(), "metrics.md": metrics(), "reasons.md": reasons()}


def commands() -> str:
    """Return the page of commands: the help of each command, as printed in a terminal of 100 columns."""
    os.environ["COLUMNS"] = "100"
    parts = [
        "# Commands\n",
        NOTE,
        (
            "[The command line](../command-line.md) describes the commands by topic. If the help of a command does not mention "
            "the exit code 2,\nthis code means wrong usage.\n"
        ),
    ]
    for name, parser in sorted(_parsers(build_parser("*"), "wharfinger")):
        parser.prog = name
        parts.append(f"## {name}\n\n```\n{parser.format_help().rstrip()}\n```\n")
    return "\n".join(parts)


def _parsers(parser: argparse.ArgumentParser, name: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield the parsers that have no subcommands, each with its full command, such as ``wharfinger get packages``."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]  # noqa: SLF001
    if not below:
        yield name, parser
    for action in below:
        for word, sub in action.choices.items():
            yield from _parsers(sub, f"{name} {word}")


def kinds() -> str:
    """Return the page of kinds: each field of each custom resource, with its type and its description."""
    parts = ["# Kinds\n", NOTE, "[Custom resources](../resources.md) explains the fields, with examples.\n"]
    for crd in sorted(own_crds(), key=lambda each: find_str(each, "spec", "names", "kind")):
        version = find_list(crd, "spec", "versions")[0]
        schema = as_object(find(version, "schema", "openAPIV3Schema"), "schema")
        group, kind = find_str(crd, "spec", "group"), find_str(crd, "spec", "names", "kind")
        parts.append(f"## {kind}\n\n`{group}/{find_str(version, 'name')}`, {find_str(crd, 'spec', 'scope')}\n")
        rows = [
            *_fields(find_object(schema, "properties", "spec"), "spec"),
            *_fields(find_object(schema, "properties", "status"), "status"),
        ]
        parts.append("\n".join(["| field | type | meaning |", "|---|---|---|", *rows]) + "\n")
    return "\n".join(parts)


def _fields(schema: JsonObject, path: str) -> Iterator[str]:
    kind, items = find_str(schema, "type") or "any", find_object(schema, "items")
    if items:
        kind = f"{kind} of {find_str(items, 'type')}s"
    if text := " ".join(find_str(schema, "description").split()).replace("|", "\\|"):
        yield f"| `{path}` | {kind} | {text} |"
    if items:
        yield from _fields(items, f"{path}[]")
    for name, below in sorted(find_object(schema, "properties").items()):
        yield from _fields(as_object(below, name), f"{path}.{name}")


def metrics() -> str:
    """Return the page of the daemon's metrics, each with its help text."""
    parts = [
        "# Metrics\n",
        NOTE,
        "The metrics of the daemon, sorted by name. [Metrics](../metrics.md) explains the metrics and their limits.\n",
        "| name | kind | labels | meaning |",
        "|---|---|---|---|",
    ]
    for each in sorted((*DAEMON_METRICS, *HOOK_METRICS), key=lambda each: each.name):
        labels = ", ".join(f"`{label}`" for label in each.labels)
        text = each.help.replace("|", "\\|")
        buckets = f" Buckets: {', '.join(f'{bound:g}' for bound in each.buckets)}." if each.buckets else ""
        parts.append(f"| `{each.name}` | {each.kind} | {labels} | {text}{buckets} |")
    return "\n".join([*parts, ""])


def reasons() -> str:
    """Return the page of reasons of conditions."""
    rows = [
        f"| `{each}` | {each.text or _NO_PROBLEM[each]} | {each.tip} | {_AGAIN_OF.get(each, _AGAIN[each.again])} |"
        for each in Reason
    ]
    head = ["| reason | meaning | what to do | next attempt |", "|---|---|---|---|"]
    intro = (
        "The reason of a condition of an Application or a Module is one of these values. Some conditions that are True, such "
        "as `Installed`, have their own type as their reason. [Troubleshooting](../troubleshooting.md) has a paragraph for each "
        "problem.\n\n"
        "The *inputs* of a package are its resource, the Secrets and ConfigMaps that contain its settings, its "
        "PackageRepository, and labels of its namespace. *On request* means after `wharfinger retry NAME`.\n\n"
        "A *platform* is a product, such as Deckhouse, that packages may require in a certain version. A *bundle* is a name "
        "that determines which Modules are on by default. Of the Modules of an *exclusive group*, only one can be on. The "
        "[glossary](../glossary.md) explains other words.\n"
    )
    return "\n".join(["# Reasons\n", NOTE, intro, *head, *rows, ""])


def main() -> int:
    """Write all pages."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
