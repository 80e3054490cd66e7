"""Chart archives (``.tgz``): unpacking one into an empty folder, within limits.

Helm puts everything below one folder named after the chart. Only archives of this form are accepted, because anything beside
that folder would silently be lost. A link that leads out of the folder is refused, because it would lead elsewhere after the
folder is moved to its final place. :mod:`wharfinger.formats.archives.archive` refuses hostile archives (names or links that
leave the folder, archive bombs).
"""

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

from wharfinger.formats.archives.archive import ArchiveLimits, extract_tar
from wharfinger.formats.errors import FormatError
from wharfinger.packages.charts.chart import CHART_FILE
from wharfinger.packages.errors import ArtifactError

MAX_ARCHIVE: Final = 100 * 1024 * 1024
"""The largest size of a chart archive before it is unpacked, in bytes."""


def unpack_chart(
    archive: BinaryIO,
    into: Path,
    *,
    what: str,
    limits: ArchiveLimits,
    should_stop: Callable[[], bool] = lambda: False,
) -> Path:
    """Unpack into the empty folder ``into`` and return the chart's folder in it.

    Blocking; ``should_stop`` is called repeatedly. Raises ArtifactError if the archive is broken, over a limit, or has no
    chart, ExtractionStoppedError if ``should_stop`` returns True, and OSError. Files that were unpacked before the error
    remain.
    """
    try:
        extract_tar(archive, into, limits, what=what, within_top=True, should_stop=should_stop)
    except FormatError as error:
        raise ArtifactError(str(error)) from error
    tops = sorted(path.name for path in into.iterdir())
    if len(tops) != 1 or not (into / tops[0] / CHART_FILE).is_file():
        found = ", ".join(tops[:5]) or "nothing"
        raise ArtifactError(
            f"{what}: expected one folder with a {CHART_FILE}, found {found[:300]}; pack it with `helm package`"
        )
    return into / tops[0]
