"""Reading foreign data: what the guards cost."""

import io
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml

from bench.measure import Ratio, compare
from wharfinger.formats.archive import ArchiveLimits, extract_tar
from wharfinger.formats.yaml_reader import read_yaml_all

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


def measure() -> Iterator[Ratio]:
    """YAML against the unguarded C loader, archives against tarfile's own extraction."""
    text = "---\n".join(DEPLOYMENT.format(number=number) for number in range(300)).encode()
    yield compare(
        "formats", f"read_yaml_all, {len(text) // 1000} kB of manifests", "yaml.CSafeLoader, no guards",
        lambda: read_yaml_all(text, what="bench"), lambda: list(yaml.load_all(text, yaml.CSafeLoader)), budget=3.0,
    )  # fmt: skip
    archive = _archive(files=400, size=20_000)
    with tempfile.TemporaryDirectory() as folder:
        numbers = iter(range(10_000))

        def ours() -> None:
            extract_tar(io.BytesIO(archive), Path(folder) / str(next(numbers)), ArchiveLimits(), what="bench")

        def theirs() -> None:
            with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
                tar.extractall(Path(folder) / str(next(numbers)), filter="data")

        yield compare(
            "formats",
            "extract_tar, 400 files, 8 MB, gzip",
            "tarfile.extractall(filter='data')",
            ours,
            theirs,
            budget=2.0,
        )


def _archive(*, files: int, size: int) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as tar:
        for number in range(files):
            info = tarfile.TarInfo(f"chart/templates/{number % 20}/file-{number}.yaml")
            info.size = size
            tar.addfile(info, io.BytesIO(bytes(number % 251 for _ in range(size))))
    return buffer.getvalue()
