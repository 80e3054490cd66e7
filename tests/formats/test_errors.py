"""errors: one base, so that a caller can refuse bad input in one place."""

import pytest

from wharfinger.formats.archive import ArchiveError
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json_value import JsonError, ShapeError, decode_json
from wharfinger.formats.yaml_reader import YamlError, read_yaml


@pytest.mark.parametrize("kind", [JsonError, ShapeError, YamlError, ArchiveError])
def test_every_reader_s_error_is_a_format_error(kind: type[Exception]) -> None:
    assert issubclass(kind, FormatError)


def test_one_handler_takes_the_refusals_of_every_reader() -> None:
    refused = []
    for read in (
        lambda: decode_json(b"{", max_bytes=10, what="answer"),
        lambda: read_yaml("a: [", what="values.yaml"),
    ):
        with pytest.raises(FormatError) as caught:
            read()
        refused.append(str(caught.value).partition(":")[0])
    assert refused == ["answer", "values.yaml"]
