"""A daemon with packages in several states, and the time of its answers, for tests of the live view."""

from dataclasses import replace
from datetime import UTC, datetime

from tests.debug.support.samples import BUSY, DAEMON, HISTORY, HOOK, LOG, RESOURCES, STATISTICS, WHY, package, task
from wharfinger.debug.package.description import Description
from wharfinger.debug.top.view import Overview, PackagePage
from wharfinger.runtime.inspector import HookSnapshot, PackageSnapshot

NOW = datetime(2026, 5, 17, 12, 34, 56, tzinfo=UTC)
PARKED = replace(task(1, error="no such chart", running=False), parked=True, name="Render")
AGAIN = replace(task(1, error="connection refused", retry_in_s=14.25, running=False), name="Download")
PACKAGES: tuple[PackageSnapshot, ...] = (
    replace(package("ingress", kind="Module"), hooks=()),
    replace(BUSY, state="Updating", hooks=()),
    replace(
        package("prod.shop", tasks=(AGAIN,)),
        state="Failed",
        message="the chart cannot be downloaded: connection refused by the registry",
        hooks=(replace(HOOK, last_run=None), HookSnapshot("hooks/002-later.py", (), 0, None, "")),
    ),
    replace(
        package("test.a-package-with-a-long-name", tasks=(PARKED, task(2, running=False))), state="Degraded", hooks=()
    ),
    replace(package("test.shop"), state="Disabled", message="disabled by its resource", hooks=()),
)
OVERVIEW = Overview(DAEMON, PACKAGES, STATISTICS, NOW)
PAGE = PackagePage("prod.shop", Description(PACKAGES[2], WHY, RESOURCES[:2], HISTORY, ()), LOG, NOW)
GONE = PackagePage("prod.shop", None, None, NOW)
