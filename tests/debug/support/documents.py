"""The golden transcript of commands that show the daemon and its package, as text and as JSON and YAML documents."""

import json
import re
from subprocess import CompletedProcess
from typing import Final

from tests.debug.support.golden import ran, unchanging, words_of
from tests.debug.support.session import Session
from tests.programs import ROOT
from wharfinger import __version__
from wharfinger.debug.printing.output import OutputFormat, render
from wharfinger.formats.json.value import JsonObject, as_object, find_list, find_object
from wharfinger.formats.yaml.reader import read_yaml

FORMS: Final = (" -o json", " -o yaml")
DOCUMENTS: Final = (
    *(f"get leader -o {form}" for form in ("wide", "json", "yaml")),
    *(f"get {what} -o {form}" for what in ("hooks", "resources", "watches", "queues") for form in ("json", "yaml")),
    *(f"{what} default.shop{form}" for what in ("describe", "events", "history") for form in ("", *FORMS)),
    *(f"{what} default.shop{form}" for what in ("why", "diff", "values", "snapshots", "dump") for form in FORMS),
    *(f"logs default.shop --hook hooks/a.sh{form}" for form in ("", " -o json")),
    *(f"tasks --package default.nope{form}" for form in FORMS),
    *(f"queues{form}" for form in ("", " -o table", " -o json")),
    *(f"pools{form}" for form in ("", " -o table", " -o json")),
    *(f"scheduler default.shop{form}" for form in ("", " -o table", " -o json")),
    *(f"graph{form}" for form in ("", " -o dot", " -o mermaid", " -o json")),
    *(f"statistics{form}" for form in ("", *FORMS)),
    "render default.shop",
    *(f"validate default.shop --settings FOLDER/settings.yaml{form}" for form in ("", *FORMS)),
    *(f"replay FOLDER/flight{form}" for form in ("", " -o json")),
    *(f"doctor --state-dir FOLDER/state{form}" for form in ("", " -o json")),
)
_UID: Final = "[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}DIGEST"
_VARYING: Final = (
    (re.compile(rf"\b[\w.-]+_{_UID}"), "IDENTITY"),
    (re.compile(_UID), "UID"),
    (re.compile(r"(resourceVersion\"?: ['\"])\d+"), r"\1NUMBER"),
    (re.compile(r"(\w+: )/[^ ,\"]+/(helm|bash|jq)\b"), r"\1FOLDER/\2"),
    (re.compile(r"(\"message\": \")/[^ ,\"]+/(helm|bash|jq)\b"), r"\1FOLDER/\2"),
    (re.compile(r"^\w+ +chart engine: .*\n(?: +remedy: .*\n)?", re.MULTILINE), ""),
    (re.compile(r" +\{\s*\"subject\": \"chart engine\",[^}]*\},\n"), ""),
    (re.compile(r"\bv\d+\.\d+\.\d+(?:\+g\w+)?"), "VERSION"),
    (re.compile(re.escape(f"version {__version__} ")), "version VERSION "),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:PORT"),
    (re.compile(re.escape(str(ROOT))), "CHECKOUT"),
)
"""Patterns of texts that differ between two runs or two machines."""
_ROW: Final = re.compile(r"^ *\d{4}-\d\d-\d\dT.*\n", re.MULTILINE)
_RENDERER: Final = re.compile(r"(rendered by |renderer\"?: \"?)[^\"\n]*")


def documents(session: Session) -> str:
    """Return the output of the commands, without the parts that differ between two runs."""
    (session.folder / "settings.yaml").write_text("{mode: 7}")
    parts = []
    for line in DOCUMENTS:
        done = session.run(*words_of(line, session.folder))
        parts.append(
            ran(line, CompletedProcess(done.args, done.returncode, _shortened(line, done.stdout), done.stderr))
        )
    text = unchanging("\n".join(parts), session.folder)
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    return text


def _shortened(line: str, text: str) -> str:
    """Return the output of a command without the parts that differ between two runs: all decisions except the first one, and
    counters.
    """
    command, form = line.split(maxsplit=1)[0], line.rpartition(" -o ")[2]
    if command in ("statistics", "replay"):
        return _RENDERER.sub(r"\1RENDERER", re.sub(r"\b\d+\b", "N", text))
    if command not in ("describe", "history"):
        return text
    if form not in ("json", "yaml"):
        head, title, tail = text.partition("Recent decisions:\n") if command == "describe" else ("", "", text)
        first, _, rest = tail.partition("Events:\n")
        return head + title + _ROW.sub("", first) + (f"Events:\n{rest}" if rest else "")
    as_form: OutputFormat = "json" if form == "json" else "yaml"
    document = as_object(json.loads(text) if form == "json" else read_yaml(text, what=line), line)
    assert render(document, as_form) == text
    history = document if command == "history" else find_object(document, "history")
    shortened: JsonObject = {**history, "events": find_list(history, "events")[:1]}
    return render(shortened if command == "history" else {**document, "history": shortened}, as_form)
