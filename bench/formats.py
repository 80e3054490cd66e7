"""Readers of untrusted data: the cost of their limits and checks."""

import copy
import io
import tarfile
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import jsonschema
import jsonschema_rs
import msgspec
import semver
import yaml
from croniter import croniter

from bench.measure import Ratio, compare, repeated
from bench.samples import SETTINGS, SETTINGS_SCHEMA, archive_of
from wharfinger.formats.archives.archive import ArchiveLimits, extract_tar
from wharfinger.formats.cron import parse_cron
from wharfinger.formats.json.value import JsonValue
from wharfinger.formats.schemas.conversion import to_json_schema
from wharfinger.formats.schemas.openapi_schema import compile_schema
from wharfinger.formats.version_constraint import parse_constraint
from wharfinger.formats.yaml.reader import read_yaml_all
from wharfinger.kube.json_patch import apply_json_patch

TIMES = 1000
SLOWLY = 100
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web-{number}, labels: {{app: web, tier: front}}}}
spec:
  replicas: 3
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers:
        - name: web
          image: registry.example/web:1.2.3
          ports: [{{containerPort: 8080, name: http}}]
          env: [{{name: A, value: "1"}}, {{name: B, value: "2"}}]
          resources: {{limits: {{cpu: 500m, memory: 256Mi}}, requests: {{cpu: 10m, memory: 64Mi}}}}
"""
PATCH: list[JsonValue] = [
    {"op": "test", "path": "/alerts/mode", "value": "CertManager"},
    {"op": "replace", "path": "/alerts/retentionDays", "value": 30},
    {"op": "add", "path": "/metrics/tolerations/-", "value": {"key": "dedicated", "operator": "Exists"}},
]


def measure(long: bool) -> Iterator[Ratio]:
    """Measure YAML and archives against readers without limits.

    Also measure schemas, patches, versions and schedules against plain libraries.
    """
    yield _yaml()
    with tempfile.TemporaryDirectory() as folder:
        yield _archive(Path(folder))
    yield from _schema()
    yield _patch()
    yield from _constraint()
    yield _cron()


def _yaml() -> Ratio:
    text = "---\n".join(DEPLOYMENT.format(number=number) for number in range(300)).encode()
    return compare(
        "formats", f"read_yaml_all, {len(text) // 1000} kB of manifests", "yaml.CSafeLoader, without limits",
        lambda: read_yaml_all(text, what="bench"), lambda: list(yaml.load_all(text, yaml.CSafeLoader)), budget=3.0,
    )  # fmt: skip


def _archive(folder: Path) -> Ratio:
    archive = archive_of(range(400), size=20_000)
    numbers = iter(range(10_000))

    def ours() -> None:
        extract_tar(io.BytesIO(archive), folder / str(next(numbers)), ArchiveLimits(), what="bench")

    def theirs() -> None:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(folder / str(next(numbers)), filter="data")

    what = "extract_tar, 400 files, 8 MB, gzip"
    return compare("formats", what, "tarfile.extractall(filter='data')", ours, theirs, budget=2.0)


def _schema() -> Iterator[Ratio]:
    schema = compile_schema(SETTINGS_SCHEMA, what="bench")
    bare = to_json_schema(schema.document, what="bench").schema
    rust, pure = jsonschema_rs.Draft202012Validator(bare), jsonschema.Draft202012Validator(bare)
    assert schema.problems(SETTINGS) == ()
    assert rust.is_valid(SETTINGS)
    assert pure.is_valid(SETTINGS)
    ours = repeated(TIMES, lambda: schema.problems(SETTINGS))
    what = f"{TIMES} x problems, valid, 50 properties"
    theirs = repeated(TIMES, lambda: rust.is_valid(SETTINGS))
    yield compare("formats", what, "bare jsonschema-rs is_valid", ours, theirs, budget=12.0)
    ours = repeated(SLOWLY, lambda: schema.problems(SETTINGS))
    theirs = repeated(SLOWLY, lambda: pure.is_valid(SETTINGS))
    what = f"{SLOWLY} x problems, valid, 50 properties"
    yield compare("formats", what, "jsonschema is_valid", ours, theirs, budget=0.2)

    ours = repeated(TIMES, lambda: schema.defaulted(SETTINGS))
    theirs = repeated(TIMES, lambda: msgspec.json.decode(msgspec.json.encode(SETTINGS)))
    what = f"{TIMES} x defaulted, 50 properties"
    yield compare("formats", what, "msgspec encode and decode", ours, theirs, budget=20.0)


def _patch() -> Ratio:
    ours = repeated(TIMES, lambda: apply_json_patch(SETTINGS, PATCH))
    theirs = repeated(TIMES, lambda: copy.deepcopy(SETTINGS))
    what = f"{TIMES} x apply_json_patch, 3 operations"
    return compare("formats", what, "copy.deepcopy of the document", ours, theirs, budget=2.0)


def _constraint() -> Iterator[Ratio]:
    text, version = ">=1.2.0, <2 || ^3.1", "1.14.2"
    constraint, least = parse_constraint(text), semver.Version.parse("1.2.0")
    assert constraint.allows(version)
    theirs = repeated(TIMES, lambda: semver.Version.parse(version).compare(least))
    ours = repeated(TIMES, lambda: constraint.allows(version))
    what = f"{TIMES} x allows, a constraint of 3 parts"
    yield compare("formats", what, "semver parse and compare", ours, theirs, budget=3.0)
    ours = repeated(TIMES, lambda: parse_constraint(text).allows(version))
    what = f"{TIMES} x parse_constraint, allows"
    yield compare("formats", what, "semver parse and compare", ours, theirs, budget=10.0)


def _cron() -> Ratio:
    text, moment = "30 4 * * 1-5", datetime(2026, 11, 3, 12, tzinfo=UTC)
    schedule = parse_cron(text, zone=UTC)
    due: datetime = croniter(text, moment).get_next(datetime)
    assert schedule.next_after(moment) == due
    ours = repeated(TIMES, lambda: schedule.next_after(moment))
    theirs = repeated(TIMES, lambda: croniter(text, moment).get_next(datetime))
    return compare("formats", f"{TIMES} x Cron.next_after", "croniter get_next", ours, theirs, budget=2.0)
