"""The targets of the fuzzer: all readers, with checks of their results, and readers that are intentionally bad.

A target returns if the input is accepted, and raises FormatError if it is refused. Anything else is a finding.
"""

import contextlib
import ctypes
import io
import json
import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from tests.control_plane.support import patch_fuzz
from tests.formats.support.fuzz_inputs import LAYER_MARK, SECRET
from wharfinger.formats.archives.archive import ArchiveLimits, extract_layers, extract_tar
from wharfinger.formats.cel.protocol import CelProtocolError, CelRequest, decode_line, encode_check, encode_evaluation
from wharfinger.formats.cel.protocol import decode_request as decode_cel_request
from wharfinger.formats.cron import parse_cron
from wharfinger.formats.duration import format_duration, parse_duration
from wharfinger.formats.errors import FormatError
from wharfinger.formats.frames import FrameError, FrameReader
from wharfinger.formats.jq.protocol import decode_answer, decode_request, encode_request
from wharfinger.formats.json.value import JsonError, JsonValue, as_object, canonical_json, decode_json
from wharfinger.formats.redaction.redaction import redact_value
from wharfinger.formats.redaction.redaction_text import redact_text
from wharfinger.formats.schemas.openapi_schema import compile_schema
from wharfinger.formats.schemas.transforms import closed, extended, required_for_helm
from wharfinger.formats.schemas.validations import SchemaRules
from wharfinger.formats.version_constraint import ConstraintError, parse_constraint, parse_version
from wharfinger.formats.yaml.lines import yaml_lines
from wharfinger.formats.yaml.reader import YamlLimits, read_yaml, read_yaml_all
from wharfinger.formats.yaml.writer import write_yaml, write_yaml_all
from wharfinger.kube.json_patch import apply_json_patch

_YAML: Final = YamlLimits(max_bytes=100_000, max_nodes=20_000, max_characters=200_000)
_ARCHIVE: Final = ArchiveLimits(
    max_bytes=256 * 1024, max_file_bytes=128 * 1024, max_entries=64, max_ratio=100, max_depth=40, max_header_bytes=4096
)


@dataclass(frozen=True, slots=True)
class Target:
    """A reader under test. ``run`` gets the input and an empty folder."""

    corpus: str
    run: Callable[[bytes, Path], None]


def _yaml(data: bytes, _: Path) -> None:
    value = read_yaml(data, what="fuzz", limits=_YAML)
    assert canonical_json(read_yaml(write_yaml(value), what="written")) == canonical_json(value)


def _yaml_stream(data: bytes, _: Path) -> None:
    documents = read_yaml_all(data, what="fuzz", limits=_YAML)
    again = read_yaml_all(write_yaml_all(documents), what="written")
    assert canonical_json(list(again)) == canonical_json(list(documents))


def _yaml_lines(data: bytes, _: Path) -> None:
    """Check that the line of each value is inside the text. A text counts as refused if the YAML reader refuses it."""
    for lines in yaml_lines(data):
        assert lines.first >= 1
        assert all(lines.first <= line <= len(data) + 1 for line in lines.places.values())
        assert all(lines.of((*path, "none")) >= lines.first for path in lines.places)
    read_yaml_all(data, what="fuzz", limits=_YAML)


def _json(data: bytes, _: Path) -> None:
    value = decode_json(data, max_bytes=100_000, what="fuzz")
    assert json.loads(data) == value
    canonical = canonical_json(value)
    assert canonical_json(decode_json(canonical, max_bytes=200_000, what="canonical")) == canonical


def _redaction(data: bytes, _: Path) -> None:
    text = data.decode("utf-8", "surrogateescape")
    once = redact_text(text, [SECRET])
    assert SECRET not in once
    assert redact_text(once, [SECRET]) == once
    redact_text(text)
    value = decode_json(data, max_bytes=100_000, what="fuzz")
    before = canonical_json(value)
    redacted = redact_value(value, secrets=[SECRET])
    assert SECRET.encode() not in canonical_json(redacted)
    assert redact_value(redacted, secrets=[SECRET]) == redacted
    assert canonical_json(value) == before


def _archive(data: bytes, folder: Path) -> None:
    _contained(folder, lambda into: extract_tar(io.BytesIO(data), into, _ARCHIVE, what="fuzz"))


def _layers(data: bytes, folder: Path) -> None:
    layers = [("layer", io.BytesIO(layer)) for layer in data.split(LAYER_MARK)]

    def extract(into: Path) -> None:
        extract_layers(layers, into, _ARCHIVE, what="fuzz")
        assert not any(path.name.startswith(".wh.") for path in into.rglob("*"))

    _contained(folder, extract)


def _contained(folder: Path, extract: Callable[[Path], object]) -> None:
    # The folder is so deep that a path with many '..' still ends inside a folder that the test checks.
    into = folder / "1/2/3/into"
    try:
        extract(into)
        check_tree(into)
    finally:
        strangers = [path for path in folder.rglob("*") if not (path.is_relative_to(into) or into.is_relative_to(path))]
        shutil.rmtree(folder / "1", ignore_errors=True)
    assert strangers == []


def _pair(data: bytes) -> tuple[JsonValue, JsonValue]:
    """Return the first two items of an input, which is a JSON list."""
    value = decode_json(data, max_bytes=100_000, what="fuzz")
    if not isinstance(value, list) or len(value) < 2:
        raise JsonError("no pair")
    return value[0], value[1]


def _schema(data: bytes, _: Path) -> None:
    document, value = _pair(data)
    before = canonical_json([document, value])
    for made in (document, required_for_helm(closed(extended(as_object(document, "schema"), {})))):
        schema = compile_schema(made, what="fuzz")
        problems = schema.problems(value)
        assert len(problems) <= 20
        assert all(problem.message for problem in problems)
        once = schema.defaulted(value)
        assert canonical_json(schema.defaulted(once)) == canonical_json(once)
        once = schema.pruned(value)
        assert canonical_json(schema.pruned(once)) == canonical_json(once)
        schema.write_only_paths(value)
        assert schema.changes(value, value) == ()
        schema.changes(value, once)
        assert all(warning.path for warning in schema.warnings(value))
        assert schema.rules is None or schema.rules.count > 0
    assert canonical_json([document, value]) == before


def _json_patch(data: bytes, _: Path) -> None:
    document, patch = _pair(data)
    before = canonical_json([document, patch])
    if not isinstance(patch, list):
        raise JsonError("no patch")
    try:
        canonical_json(apply_json_patch(document, patch))
    finally:
        assert canonical_json([document, patch]) == before


def _constraint(data: bytes, _: Path) -> None:
    text = data.decode("utf-8", "surrogateescape")
    constraint = parse_constraint(text)
    answers = [constraint.allows(version) for version in ("0.0.0", "1.2.3-rc.1", "99999999999.0.1")]
    assert [
        parse_constraint(f" {text} ").allows(version) for version in ("0.0.0", "1.2.3", "99999999999.0.1")
    ] == answers
    with contextlib.suppress(ConstraintError):
        version = parse_version(text)
        assert str(parse_version(f"v{version}")) == str(version)


def _duration(data: bytes, _: Path) -> None:
    length = parse_duration(data.decode("utf-8", "surrogateescape"), negative=True)
    assert parse_duration(format_duration(length), negative=True) == length


def _cron(data: bytes, _: Path) -> None:
    moment = datetime(2026, 3, 29, 0, 59, 59, 999_999, tzinfo=UTC)
    cron = parse_cron(data.decode("utf-8", "surrogateescape"), zone=UTC)
    first = cron.next_after(moment)
    assert moment < first < cron.next_after(first) < moment + timedelta(days=366 * 700)


def _jq(data: bytes, _: Path) -> None:
    reader = FrameReader(100_000)
    reader.feed(data)
    while (payload := reader.take()) is not None:
        try:
            request = decode_request(payload)
        except FrameError:
            decode_answer(payload)
        else:
            assert decode_request(encode_request(request)) == request


def _cel(data: bytes, _: Path) -> None:
    for line in data.splitlines():
        try:
            request = decode_cel_request(line)
        except CelProtocolError:
            decode_line(line)
        else:
            rules = SchemaRules(1, request.rules)
            again = encode_check(rules)
            if request.has_self:
                again = encode_evaluation(rules, request.value, request.old)
            assert decode_cel_request(again) == (request if request.has_self else CelRequest(request.rules))


def check_tree(root: Path) -> None:
    """Check that every link ends inside the tree, and that modes give rights to the owner only."""
    real = os.path.realpath(root)
    for path in root.rglob("*"):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            target = os.path.realpath(path)
            assert target == real or target.startswith(real + "/"), f"{path} leads to {target}"
        else:
            assert stat.S_ISREG(mode) or stat.S_ISDIR(mode), f"{path} has mode {mode:o}"
            assert stat.S_IMODE(mode) & 0o7077 == 0, f"{path} has mode {mode:o}"


def is_bad(data: bytes) -> bool:
    """Return whether the bad readers fail on this input. Such inputs are rare, so the harness has to find them."""
    return len(data) % 31 == 7


def _bad(choke: Callable[[bytes], None]) -> Target:
    def run(data: bytes, _: Path) -> None:
        if is_bad(data):
            choke(data)
        raise FormatError("refused")

    return Target("yaml", run)


def _loop(_: bytes) -> None:
    while True:
        pass


def _eat(_: bytes) -> None:
    eaten = []
    while True:
        eaten.append(b"x" * 10_000_000)


def _crash(_: bytes) -> None:
    ctypes.string_at(0)


def _missing_key(data: bytes) -> None:
    raise KeyError(len(data))


def _recurse(data: bytes) -> None:
    _recurse(data)


TARGETS: Final = {
    "yaml": Target("yaml", _yaml),
    "yaml-stream": Target("yaml", _yaml_stream),
    "yaml-lines": Target("yaml", _yaml_lines),
    "json": Target("json", _json),
    "redaction": Target("redaction", _redaction),
    "archive": Target("tar", _archive),
    "layers": Target("layers", _layers),
    "constraint": Target("constraint", _constraint),
    "duration": Target("duration", _duration),
    "cron": Target("cron", _cron),
    "jq": Target("jq", _jq),
    "cel": Target("cel", _cel),
    "schema": Target("schema", _schema),
    "json-patch": Target("json-patch", _json_patch),
    "object-patches": Target("object-patches", lambda data, _: patch_fuzz.run(data)),
}
BAD_TARGETS: Final = {
    "bad-abort": _bad(lambda _: os.abort()),
    "bad-segfault": _bad(_crash),
    "bad-exit": _bad(lambda _: os._exit(0)),
    "bad-loop": _bad(_loop),
    "bad-memory": _bad(_eat),
    "bad-key-error": _bad(_missing_key),
    "bad-recursion": _bad(_recurse),
}
