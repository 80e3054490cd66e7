"""Output of the author's commands on stdout and stderr."""

import io
import json
import sys

import pytest

from wharfinger.formats.json.value import JsonValue
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.hooks.author.printing import refuse, rendered, say, tell


def test_documents_are_rendered_as_yaml_or_json() -> None:
    document: JsonValue = [{"a": 1}]
    assert rendered(document, "yaml") == "- a: 1\n"
    assert json.loads(rendered(document, "json")) == document
    deep: JsonValue = 1
    for _ in range(250):
        deep = [deep]
    assert rendered(deep, "yaml") == rendered(deep, "json")
    assert read_yaml(rendered(document, "json"), what="it") == document


def test_unencodable_characters_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = (io.TextIOWrapper(io.BytesIO(), "ascii", newline="") for _ in range(2))
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    say("ä\n")
    tell("ö")
    assert refuse("no") == 1
    for stream, text in ((out, b"\\xe4\n"), (err, b"\\xf6\nerror: no\n")):
        stream.seek(0)
        assert stream.buffer.read() == text


def test_closed_stderr_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(io.StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Gone())
    tell("nobody reads this")
