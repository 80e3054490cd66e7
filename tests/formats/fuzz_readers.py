"""What the fuzzer runs: each reader with what must hold of its answer, and readers that are bad on purpose.

A target returns when the input was taken, raises FormatError when it was refused, and anything else is a finding.
"""

import ctypes
import io
import json
import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.formats.fuzz_inputs import SECRET
from wharfinger.formats.archive import ArchiveLimits, extract_tar
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json_value import canonical_json, decode_json
from wharfinger.formats.redaction import redact_text, redact_value
from wharfinger.formats.yaml_reader import YamlLimits, read_yaml, read_yaml_all
from wharfinger.formats.yaml_writer import write_yaml, write_yaml_all

_YAML: Final = YamlLimits(max_bytes=100_000, max_nodes=20_000, max_characters=200_000)
_ARCHIVE: Final = ArchiveLimits(
    max_bytes=256 * 1024, max_file_bytes=128 * 1024, max_entries=64, max_ratio=100, max_depth=40, max_header_bytes=4096
)


@dataclass(frozen=True, slots=True)
class Target:
    """A reader under test; ``run`` gets the input and a folder of its own."""

    corpus: str
    run: Callable[[bytes, Path], None]


def _yaml(data: bytes, _: Path) -> None:
    value = read_yaml(data, what="fuzz", limits=_YAML)
    assert canonical_json(read_yaml(write_yaml(value), what="written")) == canonical_json(value)


def _yaml_stream(data: bytes, _: Path) -> None:
    documents = read_yaml_all(data, what="fuzz", limits=_YAML)
    again = read_yaml_all(write_yaml_all(documents), what="written")
    assert canonical_json(list(again)) == canonical_json(list(documents))


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
    # Deep enough that a climb would still end in a folder that is watched.
    into = folder / "1/2/3/into"
    try:
        extract_tar(io.BytesIO(data), into, _ARCHIVE, what="fuzz")
        check_tree(into)
    finally:
        strangers = [path for path in folder.rglob("*") if not (path.is_relative_to(into) or into.is_relative_to(path))]
        shutil.rmtree(folder / "1", ignore_errors=True)
    assert strangers == []


def check_tree(root: Path) -> None:
    """Every link ends inside, no mode gives more than the owner has."""
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
    """The inputs that the bad readers choke on: rare enough that the harness has to find them."""
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
    "json": Target("json", _json),
    "redaction": Target("redaction", _redaction),
    "archive": Target("tar", _archive),
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
