"""The metrics of the traffic with the API server: when the server last sent anything on each watch, and how many requests may
be sent at the same time.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from wharfinger.cluster.api.http_client import HttpClusterClient
from wharfinger.cluster.traffic.heartbeats import WatchSign
from wharfinger.formats.exposition import Description, MetricKind, plain_text

WATCH: Final = ("kind", "namespace", "label_selector", "field_selector")
MAX_WATCHES: Final = 1_000
REQUESTING: Final = frozenset({"listing", "opening"})
"""The actions in which a watch sends a request. The request may have to wait until other requests have ended."""
OTHERS: Final = ("(others)", "", "", "")

HEARD: Final = Description(
    "wharfinger_watch_last_heard_timestamp_seconds",
    MetricKind.GAUGE,
    "Time at which the API server last answered or sent anything on a watch, in seconds since 1970. The value is 0 if the "
    "server has sent nothing yet.",
    WATCH,
)
STALE: Final = Description(
    "wharfinger_watch_stale",
    MetricKind.GAUGE,
    "Number of watches that hang. /livez fails while a watch hangs, but ignores a watch whose own request may still be waiting "
    "for other requests.",
    (),
)
LIMIT: Final = Description(
    "wharfinger_api_requests_limit",
    MetricKind.GAUGE,
    "Upper limit on the number of requests to the API server that a client (a group of connections) has in progress. The limit "
    "falls while the API server is overloaded.",
    ("client",),
)
UNDER_WAY: Final = Description(
    "wharfinger_api_requests_under_way",
    MetricKind.GAUGE,
    "Number of requests in progress, including those that wait because the API server requested a delay.",
    ("client",),
)
WAITING: Final = Description(
    "wharfinger_api_requests_waiting",
    MetricKind.GAUGE,
    "Number of requests that wait because the limit on requests in progress is reached.",
    ("client",),
)
REFUSED: Final = Description(
    "wharfinger_api_requests_refused_total",
    MetricKind.COUNTER,
    "Number of answers in which the API server requested a slower pace: 429, or 503 with Retry-After.",
    ("client",),
)
WATCH_METRICS: Final = (HEARD, STALE, LIMIT, UNDER_WAY, WAITING, REFUSED)

Rows = Sequence[tuple[Sequence[str], float]]


def watch_families(clients: Sequence[tuple[str, HttpClusterClient]], now: float) -> Iterator[tuple[Description, Rows]]:
    """Yield the metrics about the watches and requests of all clients. ``clients`` has each client with its name, and ``now``
    is the wall clock in seconds since 1970.

    Watches with the same labels share one series. Its value is the time of the watch that has been silent for the longest time.
    If there would be more than MAX_WATCHES series, all remaining watches share one more series.
    """
    signs = [sign for _, client in clients for sign in client.heartbeats.signs()]
    yield HEARD, list(_heard(signs, now).items())
    yield STALE, [((), sum(sign.is_stale for sign in signs))]
    paces = [((name,), client.pace()) for name, client in clients]
    yield LIMIT, [(name, pace.limit) for name, pace in paces]
    yield UNDER_WAY, [(name, pace.under_way) for name, pace in paces]
    yield WAITING, [(name, pace.waiting) for name, pace in paces]
    yield REFUSED, [(name, pace.refused) for name, pace in paces]


def stale_watches(clients: Sequence[tuple[str, HttpClusterClient]]) -> tuple[str, ...]:
    """Return a sentence for each watch that hangs. A watch whose request may be waiting for other requests of its client is
    left out.
    """
    return tuple(
        str(sign)
        for _, client in clients
        for sign in client.heartbeats.signs()
        if sign.is_stale and not (sign.action in REQUESTING and client.pace().waiting)
    )


def _heard(signs: Sequence[WatchSign], now: float) -> dict[tuple[str, ...], float]:
    heard: dict[tuple[str, ...], float] = {}
    for sign in signs:
        one = sign.followed
        labels = tuple(map(plain_text, (one.kind, one.namespace, one.label_selector, one.field_selector)))
        key = labels if labels in heard or len(heard) < MAX_WATCHES else OTHERS
        at = 0.0 if sign.heard_s_ago is None else now - sign.heard_s_ago
        heard[key] = min(at, heard.get(key, at))
    return heard
