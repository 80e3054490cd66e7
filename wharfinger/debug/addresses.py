"""The paths and parameters of the debug socket, and the answers by which a client distinguishes failures.

The server and the client share them, so that a command does not have to import the server.
"""

from typing import Final

RENDER: Final = "/api/v1/packages/render/"
VALIDATE: Final = "/api/v1/packages/validate/"
"""The prefix of the paths for settings validation; the name of a package follows."""
WHY: Final = "/api/v1/why"
HISTORY: Final = "/api/v1/history"
RESOURCES: Final = "/api/v1/packages/resources"
EVENTS: Final = "/api/v1/events"
LOGS: Final = "/api/v1/logs"
DIFFERENCE: Final = "/api/v1/packages/diff"
SNAPSHOTS: Final = "/api/v1/packages/snapshots/"
"""The prefix of the paths of hook snapshots; the name of a package follows."""
TASKS: Final = "/api/v1/tasks/dump"
MEMORY: Final = "/api/v1/memory"
PROFILE: Final = "/api/v1/profile"
SECONDS: Final = "seconds"
"""The query parameter of PROFILE with the number of seconds for which stacks are sampled."""
AFTER: Final = "after"
"""The query parameter of LOGS with the number of the last line that the client already has."""
REQUIREMENTS: Final = "/api/v1/requirements/dump"
GLOBAL_DUMP: Final = "/api/v1/packages/global/dump"
SCHEMA: Final = "/api/v1/schema"
WATCH: Final = "watch"
"""The parameter that asks for the changes of a document as JSON lines."""
METRICS: Final = "/metrics"
HOOK_METRICS: Final = "/metrics/hooks"
SETTINGS_VERSION: Final = "settings-version"
MAX_SETTINGS_VERSION: Final = 1_000
MAX_DIGITS: Final = 9
MAX_SHOWN: Final = 100
"""The largest number of characters that an error message quotes from a request."""
MAX_SETTINGS: Final = 1024 * 1024
"""The maximum size of the settings in a request, in bytes; an object in a cluster cannot be much larger."""
SHOW_SECRETS: Final = "show-secrets"
HOOKS: Final = "hooks"
ELSEWHERE: Final = f"# The metrics of hooks are on {HOOK_METRICS}, and here with ?{HOOKS}=true\n"
"""A comment at the end of the daemon's own metrics, for users who look there for the metrics of hooks; scrapers ignore it."""
NO_CHART: Final = "package has no Helm chart"
RENDER_FAILED: Final = "render failed: "
UNAVAILABLE: Final = "not available: "
NO_PACKAGE: Final = "no package named "


def read_number(text: str) -> int | None:
    """Parse a number of at most MAX_DIGITS digits; None for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS else None


def read_settings_version(text: str) -> int | None:
    """Parse the version of settings; None if it is not a valid version."""
    version = read_number(text)
    return version if version is not None and version <= MAX_SETTINGS_VERSION else None
