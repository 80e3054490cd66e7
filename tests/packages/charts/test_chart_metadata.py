"""Chart.yaml files with unusual values of all kinds, which must be read as the real Helm reads them."""

import base64
import random
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.packages.support.charts import tool, write
from tests.scale import scaled
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonValue, decode_json, encode_json
from wharfinger.formats.yaml.writer import write_yaml
from wharfinger.packages.charts.chart import Chart, read_chart_file
from wharfinger.packages.charts.chart_metadata import MAX_WARNINGS, read_metadata
from wharfinger.packages.errors import ArtifactError

BASE: Final = {"apiVersion": "v2", "name": "web", "version": "1.0.0"}
ODD: Final = {
    "apiVersion": " ;; v1 ;; v2 ;; '' ;; null ;; []",
    "name": (
        " ;; '' ;; 1 ;; 1.5 ;; true ;; a..b ;; ../web ;; -a ;; a/b ;; 'a b' ;; ünï ;; [a] ;; a_b ;; 1e3 ;; "
        '0x10 ;; 2020-01-01 ;; "a\\nb" ;; "a\\u202e"'
    ),
    "version": (
        " ;; '' ;; null ;; 1 ;; 1.0 ;; 1.10 ;; true ;; one ;; 01.0.0 ;; 1.0.0.0 ;; 1.0.0- ;; v1.2 ;; "
        "1.5e3 ;; 1e20 ;; 1.123456789 ;; -1 ;; 0x10 ;; 010 ;; 0o10 ;; 1_000 ;; ' 1.0.0 ' ;; 1.0.0-01 ;; "
        "1.0.0+01 ;; 2020-01-01 ;; .5 ;; 1. ;; [1] ;; '1.0.0-a_b' ;; 99999999999999999999.0.0 ;; "
        "18446744073709551615.0.0 ;; V1.0.0 ;; latest ;; .inf ;; .nan ;; 1:30 ;; !!str 1.0 ;; 1.0.0-0a.b"
    ),
    "appVersion": (
        "1.27 ;; 1 ;; true ;; null ;; [1] ;; 1.0 ;; 1e100 ;; 123456789 ;; 3.14159265358979 ;; 1e-7 ;; "
        "100000000000000000000000 ;; -0.0"
    ),
    "type": "application ;; library ;; app ;; '' ;; null ;; 1 ;; [a] ;; Application",
    "dependencies": (
        "{} ;; [] ;; [a] ;; [{}] ;; null ;; [{name: sub, version: 1}] ;; [{name: sub, version: '>9'}] ;; "
        "[null] ;; [{version: 1.0.0}] ;; sub ;; [{name: sub, version: 0.1.0, alias: 'a b'}] ;; "
        "[{name: sub, version: 0.1.0, alias: 1}] ;; [{name: sub, version: 0.1.0, tags: a}] ;; "
        "[{name: sub, version: 0.1.0},{name: sub, version: 0.1.0}] ;; "
        "[{name: sub, version: 0.1.0, condition: [a]}] ;; [{name: sub, version: 0.1.0, enabled: 3}] ;; "
        "[{name: sub, version: 0.1.0, zzz: 3}] ;; [{name: sub, version: 0.1.0, import-values: [a]}]"
    ),
    "description": "1 ;; true ;; [] ;; null ;; 1.5 ;; !!binary aGVsbG8=",
    "keywords": "a ;; [1] ;; [a, null] ;; {}",
    "maintainers": "a ;; [a] ;; [{name: a}] ;; [{}] ;; [null] ;; [{name: 1}] ;; [{Name: a}]",
    "sources": "a ;; [1] ;; [[]]",
    "kubeVersion": "'>=1.10' ;; '>=99' ;; 1 ;; [a]",
    "deprecated": "true ;; 'true' ;; 1 ;; no ;; nope",
    "annotations": "{a: b} ;; {a: 1} ;; {a: true} ;; {a: {}} ;; [a] ;; {a: null} ;; {1: b}",
    "unknown": "1 ;; [a]",
    "Name": "other ;; [a]",
    "VERSION": "2.0.0",
    "engine": "gotpl",
}
"""Values of a field, separated by ";;"; an empty value leaves the field out."""
TAILS: Final = ("", "", "", "---\nfoo: bar\n", "name: twice\n", "1: a\n", "<<: {icon: x}\n")
TEMPLATE: Final = """apiVersion: v1
kind: ConfigMap
metadata: {name: x}
data: {is: {{ list .Chart.Name .Chart.Version .Chart.AppVersion .Chart.APIVersion .Chart.Description | toJson | b64enc }}}
"""
AFTER_READING: Final = (
    "library charts are not installable",
    "incompatible with Kubernetes",
    "missing in charts/ directory",
)
"""Messages of Helm about a file that it was able to read. For such files, the daemon reports the problem only when the package
is rendered.
"""


def variations(count: int) -> list[str]:
    """Return Chart.yaml files with one unusual value, then files with up to three. The sequence is always the same."""
    chosen = random.Random(15)  # noqa: S311 - no secret
    pool = {key: values.split(" ;; ") for key, values in ODD.items()}
    one = [{**BASE, key: value} for key, values in pool.items() for value in values]
    picked = chosen.sample(one, min(count // 2, len(one)))
    while len(picked) < count:
        keys = chosen.sample(sorted(pool), chosen.randint(1, 3))
        picked.append({**BASE, **{key: chosen.choice(pool[key]) for key in keys}})
    texts = ["".join(f"{key}: {value}\n" for key, value in each.items() if value) for each in picked]
    return [text + chosen.choice(TAILS) for text in texts]


def rendered(text: str, folder: Path) -> JsonValue:
    """Return the chart's metadata as a template sees them, None if Helm cannot read the file, or True if Helm reads the file
    but cannot render the chart.
    """
    write(folder, {"Chart.yaml": text, "templates/a.yaml": TEMPLATE})
    write(folder / "charts" / "sub", {"Chart.yaml": "apiVersion: v2\nname: sub\nversion: 0.1.0\n"})
    environment = {"HOME": str(folder), "PATH": "/usr/bin:/bin"}
    command = [str(tool("helm")), "template", "r", str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        return True if any(said in done.stderr for said in AFTER_READING) else None
    said = done.stdout.partition("data: {is: ")[2].partition("}")[0]
    return decode_json(base64.b64decode(said), max_bytes=10_000, what="helm")


def read(text: str) -> Chart | None:
    try:
        return read_chart_file(text.encode(), Path("web"))
    except ArtifactError:
        return None


def seen(found: Chart) -> JsonValue:
    return [found.name, found.version, found.app_version, found.api_version, found.description]


@pytest.mark.slow
def test_charts_are_accepted_and_read_as_by_helm(tmp_path: Path) -> None:
    texts = variations(scaled(600, 60))
    with ThreadPoolExecutor(2) as pool:
        by_helm = list(pool.map(lambda at: rendered(texts[at], tmp_path / str(at)), range(len(texts))))
    assert 20 <= sum(each is None for each in by_helm) * 100 // len(texts) <= 70
    for text, helms in zip(texts, by_helm, strict=True):
        found = read(text)
        assert (found is not None) == (helms is not None), text
        if found is not None and helms is not True:
            assert seen(found) == helms, text


def test_rewritten_metadata_has_the_same_meaning_for_helm(tmp_path: Path) -> None:
    """The Chart.yaml of a module folder is rewritten for Helm, and stored in the record of the release."""
    text = (
        "name: web\nversion: 1.10\nappVersion: 1e100\ndescription: true\nkeywords: [1, null]\nmaintainers: [{name: 1}]\n"
        "annotations: {a: 1, b: null}\ndependencies: [{name: sub, version: 0.1, alias: null, import-values: [a]}]\n"
        "engine: gotpl\n"
    )
    found = read(text)
    assert found is not None
    assert found.metadata == {
        "apiVersion": "v1",
        "name": "web",
        "version": "1.1",
        "appVersion": "+Inf",
        "description": "true",
        "keywords": ["1", ""],
        "maintainers": [{"name": "1"}],
        "annotations": {"a": "1", "b": ""},
        "dependencies": [{"name": "sub", "version": "0.1", "import-values": ["a"]}],
    }
    again = read(write_yaml(found.metadata))
    assert again is not None
    assert (again.metadata, again.warnings) == (found.metadata, ())


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("name: a\nversion: 1.0.0", "web/Chart.yaml: apiVersion: missing; read as v1, as Helm reads it"),
        ("version: 1.0", "line 3: version: a number is read as the string '1'; put it in quotes"),
        ("version: 1", "line 3: version: an integer is read as the string '1'; put it in quotes"),
        ("version: 1.0.0\nappVersion: true", "line 4: appVersion: a boolean is read as the string 'true'"),
        (
            "version: 1.0.0\ndepedencies: []",
            "line 4: depedencies: unknown key, which Helm ignores; did you mean 'dependencies'?",
        ),
        ("version: 1.0.0\nmaintainers: [{mail: a}]", "maintainers.mail: unknown key, which Helm ignores"),
        ("version: 1.0.0\nDescription: a", "line 4: Description: read as 'description'; correct the spelling"),
        ("version: 1.0.0\nversion: 1.0.1", 'line 4: key "version" already set in map; the last counts'),
        ("version: 1.0.0\napiVersion: v3", "line 1: apiVersion: 'v3' is neither v1 nor v2: Helm 4 does not"),
        ("version: 1.0.0\nname: a..b", "line 2: name: 'a..b' has other characters than letters, digits, '-', '_', '.'"),
    ],
)
def test_oddities_are_warnings_with_their_line(text: str, warning: str) -> None:
    head = "" if text.startswith("name") else "apiVersion: v2\nname: web\n"
    found = read(head + text)
    assert found is not None
    assert any(warning in each for each in found.warnings), found.warnings
    assert all(each.count("web/Chart.yaml") == 1 for each in found.warnings)


def test_a_usual_chart_has_no_warnings() -> None:
    found = read(
        "apiVersion: v2\nname: web-1\nversion: 1.0.0\nappVersion: '1'\nmaintainers: [{name: a}]\nkubeVersion: '>1'\n"
    )
    assert found is not None
    assert found.warnings == ()


def test_warnings_are_bounded() -> None:
    text = "".join(f"k{number}: 1\n" for number in range(1000))
    assert len(read_metadata(text.encode(), "c")[1]) == MAX_WARNINGS


@given(st.binary(max_size=60) | st.text(alphabet="apiVersionme: v12.0\n-[]{}&*!~fn", max_size=60).map(str.encode))
def test_any_bytes_are_read_as_metadata_or_refused(data: bytes) -> None:
    try:
        metadata, _ = read_metadata(data, "Chart.yaml")
    except FormatError:
        return
    encode_json(metadata)
