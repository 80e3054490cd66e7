"""Release records for tests, of any size."""

import base64
import random
from datetime import UTC, datetime

from wharfinger.cluster.lease.fencing import Holder
from wharfinger.cluster.records.release import Release, ReleaseStatus, new_release
from wharfinger.formats.json.value import JsonObject

NOW = datetime(2026, 1, 1, tzinfo=UTC)
US = Holder("daemon-1", 3, "default/wharfinger/uid-1")
HOOK: JsonObject = {"name": "hook", "kind": "Job", "manifest": "kind: Job\n", "events": ["post-install"]}


def noise(size: int, seed: int = 5) -> str:
    """Return a text that no compression makes smaller than three quarters of its size. A seed always results in the same text."""
    drawn = random.Random(seed).randbytes(size * 3 // 4 + 3)  # noqa: S311 - no secret
    return base64.urlsafe_b64encode(drawn)[:size].decode()


LARGE = noise(3 * 1024 * 1024)


def record(
    revision: int = 1,
    manifest: str = "---\nkind: A\n",
    *,
    status: ReleaseStatus = ReleaseStatus.DEPLOYED,
    holder: Holder = US,
    notes: str = "Hello\n",
    **more: JsonObject,
) -> Release:
    """Return a revision of the release ``web``; ``more`` may be ``values`` and ``chart_values``."""
    return new_release(
        name="web",
        namespace="default",
        revision=revision,
        status=status,
        description=f"revision {revision}",
        chart={"name": "web", "version": "1.2.3", "annotations": {"a": "b"}},
        values=more.get("values", {"v": 1}),
        manifest=manifest,
        hooks=[HOOK],
        now=NOW,
        holder=holder,
        notes=notes,
        chart_values=more.get("chart_values"),
    )
