"""The charts of ``tests/charts``, each in two versions.

Each folder there is the first version of a chart. Its ``ci/`` contains the difference to the second version: ``two/`` has files
that replace files of the chart or are added to them, and ``two-values.yaml`` has the values that a user gives to the second
version. Large files are not stored there, but made by this module.
"""

import base64
import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from wharfinger.formats.json.value import JsonObject, as_object
from wharfinger.formats.yaml.reader import read_yaml

CHARTS: Final = Path(__file__).resolve().parent.parent / "charts"
NAMES: Final = tuple(sorted(path.name for path in CHARTS.iterdir()))

LOADS: Final = 4
LOAD_BYTES: Final = 300 * 1024
"""The size of one large file, which is 400 KiB in base64."""


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a chart: its folder, and a file with values."""

    chart: str
    number: int
    folder: Path
    values_file: Path

    @property
    def values(self) -> JsonObject:
        """Return the values that a user gives."""
        what = f"{self.chart} {self.number}"
        return as_object(read_yaml(self.values_file.read_bytes(), what=what) or {}, what)


def unpack(name: str, folder: Path) -> tuple[Version, Version]:
    """Make both versions of a chart below ``folder``, and return them."""
    versions: list[Version] = []
    for number in (1, 2):
        target = folder / name / str(number)
        shutil.copytree(CHARTS / name, target, ignore=shutil.ignore_patterns("ci"))
        values = folder / name / f"{number}-values.yaml"
        values.write_text("{}\n")
        if number == 2:
            shutil.copy(CHARTS / name / "ci" / "two-values.yaml", values)
            if (overlay := CHARTS / name / "ci" / "two").exists():
                shutil.copytree(overlay, target, dirs_exist_ok=True)
        _MADE.get(name, _nothing)(target)
        versions.append(Version(name, number, target, values))
    return versions[0], versions[1]


def _nothing(_: Path) -> None:
    pass


def _loads(count: int, folder: Path) -> None:
    """Write files of pseudo-random bytes in base64, which compress badly. The bytes are the same at each call."""
    (folder / "loads").mkdir()
    for number in range(count):
        load = hashlib.shake_256(str(number).encode()).digest(LOAD_BYTES)
        (folder / "loads" / str(number)).write_bytes(base64.b64encode(load))


_MADE: Final[dict[str, Callable[[Path], None]]] = {"heavy": partial(_loads, LOADS)}
