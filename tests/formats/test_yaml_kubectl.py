"""The table of yaml_table.py, compared with the real kubectl, which reads files without a cluster (``annotate --local``).

These tests are skipped if kubectl is not on PATH. The other tests in this folder do not need it.
"""

import json
import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings

from tests.formats.support.values import json_objects
from tests.formats.support.yaml_table import ACCEPTED, ONLY_WE_REFUSE, REFUSED, WE_KEEP
from wharfinger.formats.json.value import JsonObject, JsonValue, canonical_json, find, to_json
from wharfinger.formats.yaml.writer import write_yaml

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH")

_HEAD = "apiVersion: example.dev/v1\nkind: Row\nmetadata:\n  name: row\nspec:\n"


def _kubectl(text: str) -> subprocess.CompletedProcess[bytes]:
    argv = ["kubectl", "annotate", "--local", "--filename", "-", "--output", "json", "asked=yes"]
    return subprocess.run(argv, input=text.encode(), capture_output=True, check=False, timeout=300)


def _object(spec: str) -> str:
    return _HEAD + "".join(f"  {line}\n" for line in spec.splitlines())


def _int64(digits: str) -> float:
    """Return a JSON number as Kubernetes reads it: an integer if it fits into 64 bits, otherwise a float."""
    value = int(digits)
    return value if -(2**63) <= value < 2**63 else float(value)


def _answers(printed: bytes) -> list[JsonValue]:
    """Return the objects that kubectl printed."""
    text = printed.decode()
    decoder = json.JSONDecoder(parse_int=_int64)
    found: list[JsonValue] = []
    while text := text.lstrip():
        answer, end = decoder.raw_decode(text)
        found.append(to_json(answer))
        text = text[end:]
    return found


def _specs(texts: list[str]) -> list[JsonValue]:
    """Return the values that kubectl reads from the texts, all in one call."""
    done = _kubectl("---\n".join(_object(text) for text in texts))
    assert done.returncode == 0, done.stderr.decode()
    return [find(answer, "spec") for answer in _answers(done.stdout)]


def test_kubectl_reads_the_accepted_rows_of_the_table_equally() -> None:
    answers = _specs([text for text, _ in ACCEPTED])

    assert len(answers) == len(ACCEPTED)
    wrong = [
        (text, expected, answer)
        for (text, expected), answer in zip(ACCEPTED, answers, strict=True)
        if canonical_json(answer) != canonical_json(expected)
    ]
    assert wrong == []


@pytest.mark.slow
def test_kubectl_refuses_the_refused_rows_of_the_table() -> None:
    taken = [text for text in REFUSED if _kubectl(_object(text)).returncode == 0]

    assert taken == []


def test_kubectl_accepts_rows_that_only_this_reader_refuses() -> None:
    assert len(_specs(ONLY_WE_REFUSE)) == len(ONLY_WE_REFUSE)


def test_kubectl_differs_in_the_rows_with_exact_integers() -> None:
    for text, ours in WE_KEEP:
        done = _kubectl(_object(text))
        assert done.returncode != 0 or find(_answers(done.stdout)[0], "spec") != ours, text


@settings(max_examples=4, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(json_objects(max_leaves=400))
def test_kubectl_reads_written_yaml(spec: JsonObject) -> None:
    document: JsonObject = {"apiVersion": "example.dev/v1", "kind": "Row", "metadata": {"name": "row"}, "spec": spec}

    done = _kubectl(write_yaml(document))

    assert done.returncode == 0, done.stderr.decode()
    assert [find(answer, "spec") for answer in _answers(done.stdout)] == [spec]
