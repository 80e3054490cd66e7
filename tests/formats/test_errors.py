"""The base class of all errors of readers. A caller that catches it handles bad input of every format."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from wharfinger.formats.archives.archive import extract_tar
from wharfinger.formats.errors import ArchiveError, FormatError, ProgramError
from wharfinger.formats.json.value import JsonError, ShapeError, decode_json
from wharfinger.formats.yaml.reader import YamlError, read_yaml


@pytest.mark.parametrize("kind", [JsonError, ShapeError, YamlError, ArchiveError])
def test_errors_of_readers_are_format_errors(kind: type[Exception]) -> None:
    assert issubclass(kind, FormatError)


def test_format_error_catches_the_errors_of_every_reader(tmp_path: Path) -> None:
    readers: list[Callable[[], object]] = [
        lambda: decode_json(b"{", max_bytes=10, what="input"),
        lambda: read_yaml("a: [", what="input"),
        lambda: extract_tar(io.BytesIO(b"x"), tmp_path, what="input"),
    ]
    for read in readers:
        with pytest.raises(FormatError, match=r"^input: "):
            read()


def test_a_program_error_is_not_a_format_error() -> None:
    assert not issubclass(ProgramError, FormatError)
    assert not ProgramError("x").transient
