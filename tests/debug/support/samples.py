"""Snapshots for tests of output. Some are ordinary, and some contain hostile texts."""

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import strategies as st

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.schemas.problem import Problem
from wharfinger.runtime.daemon_details import (
    DaemonSnapshot,
    MemoryPartSnapshot,
    MemorySnapshot,
    MonitorCounts,
    ObjectCounts,
    PoolSnapshot,
    SchedulesSnapshot,
    SlotsSnapshot,
    StatisticsSnapshot,
    StoreSnapshot,
    TaskCounts,
    WarmPoolSnapshot,
)
from wharfinger.runtime.inspector import (
    ConditionSnapshot,
    EventSnapshot,
    HistorySnapshot,
    HookSnapshot,
    IndexSnapshot,
    InvalidSettings,
    MonitorSnapshot,
    OperationSnapshot,
    PackageSnapshot,
    ProgressSnapshot,
    QueueSnapshot,
    RenderSnapshot,
    RepositorySnapshot,
    SettingsAnswer,
    TaskSnapshot,
    UnknownSettings,
    ValidSettings,
    VersionSnapshot,
)
from wharfinger.runtime.package_details import (
    ClusterEventSnapshot,
    DaemonTaskSnapshot,
    DifferenceSnapshot,
    FieldChangeSnapshot,
    HookSnapshotsSnapshot,
    LogLineSnapshot,
    LogSnapshot,
    ObjectChangeSnapshot,
    ResourceSnapshot,
)
from wharfinger.runtime.scheduler_details import (
    CauseSnapshot,
    DependencySnapshot,
    ExplanationSnapshot,
    GroupSnapshot,
    LackSnapshot,
    NodeSnapshot,
    VoteSnapshot,
)

MOMENT = datetime(2026, 5, 17, 12, 30, 45, 123456, tzinfo=UTC)
HOSTILE = "\x1b[31mred\x1b[0m\r\n\tnext \x9b2J \u202egnp.exe \x00\x07 \ud800 ✓ 漢字"

METRICS = "# TYPE wharfinger_ready gauge\nwharfinger_ready 1\n"
HOOK_METRICS = '# TYPE items gauge\nitems{hook="a.sh",text="\u2713 \u202e\\"\\n"} 3\n'
DAEMON = DaemonSnapshot(
    version="0.1.0",
    pid=4711,
    started=MOMENT,
    ready=True,
    cluster="https://127.0.0.1:6443",
    packages=2,
    draining=False,
    standby="",
)


def task(index: int = 1, *, error: str = "", retry_in_s: float | None = None, running: bool = True) -> TaskSnapshot:
    return TaskSnapshot(
        index=index,
        name=f"Task{index}",
        lane="main",
        enqueued_s_ago=12.5 * index,
        attempt=index,
        running=running,
        retry_in_s=retry_in_s,
        error=error,
        cause="version changed" if index == 1 else "",
    )


def package(
    name: str = "prod.shop",
    *,
    kind: str = "Application",
    message: str = "all objects are healthy",
    settings: JsonObject | None = None,
    tasks: tuple[TaskSnapshot, ...] = (),
) -> PackageSnapshot:
    return PackageSnapshot(
        name=name,
        kind=kind,
        namespace=name.partition(".")[0] if kind == "Application" else "",
        package="shop",
        version="1.2.3",
        digest="sha256:" + "0123456789abcdef" * 4,
        release_revision=3,
        state="Ready",
        message=message,
        tip="nothing to do",
        settings={"replicas": 2} if settings is None else settings,
        conditions=(ConditionSnapshot("Loaded", "True", "Loaded", "", MOMENT),),
        queue=QueueSnapshot(name, tasks),
        installed_version="1.2.3",
        installed_digest="sha256:" + "0123456789abcdef" * 4,
        values={"replicas": 2, "internal": {"ready": True}},
        hooks=(HOOK, HookSnapshot("hooks/002-later.py", (), 0, None, "")),
    )


HOOK = HookSnapshot(
    "hooks/001-config.sh", ("onStartup 10", "kubernetes configmaps", "schedule nightly 0 3 * * *"), 3, MOMENT, "exit 1"
)
MONITOR = MonitorSnapshot("hooks/001-config.sh", "configmaps", True, False, 7, 1, 2, 40, 1, "no such field")
OPERATION = OperationSnapshot("reconciliation", ("beforeHelm/hooks/a.sh",), ("apply/1",), ("afterHelm/1/b",), False)
STATISTICS = StatisticsSnapshot(
    TaskCounts(3, 12, 2, 4, 1, 5210, 17, 40, 0),
    (SlotsSnapshot("work", 16, 6, 3), SlotsSnapshot("renders", 2, 2, 3), SlotsSnapshot("api", 32, 1, 0)),
    ("ingress", "metrics"),
    SchedulesSnapshot(3, 17, MOMENT),
    MonitorCounts(12, 11, 340, 14, 2, 900, 1),
    PoolSnapshot(2, 1200, 1),
    PoolSnapshot(1, 30, 0),
    StoreSnapshot(2, 1, 4),
    objects=ObjectCounts(
        "Degraded, 2 errors", 40, pending=3, refreshing=1, failing=1, slow=2, pruned=7, prune_errors=1
    ),
)
MEMORY = MemorySnapshot(
    120 * 1024**2,
    150 * 1024**2,
    (MemoryPartSnapshot("chart-engine", 2, 60 * 1024**2), MemoryPartSnapshot("bash", 1, 3 * 1024**2)),
    (MemoryPartSnapshot("packages", 3), MemoryPartSnapshot("renders", 7, 5 * 1024**2 // 2)),
)
WAITING = task(1, error="connection refused", retry_in_s=14.25, running=False)
BUSY = replace(
    package("prod.busy", message="waits", tasks=(replace(task(1), waits_for="a slot: renders"),)),
    suspended=True,
    maintenance="NoResourceReconciliation",
    progress=ProgressSnapshot(3, 1, ("Deployment prod/busy",)),
    warnings=("settings.old: is deprecated",),
    unmatched=("Deployment gone",),
    urls=("https://web.example",),
    drift=("Deployment.apps prod/busy: /spec/replicas is set by kubectl",),
    failing=("ConfigMap prod/busy: no quota; attempt 4 failed, next at 12:07:20 UTC (in 13 s)",),
    crds=("example.com/v1/Thing",),
    waits_for=("renders",),
    operations=(OPERATION,),
    monitors=(MONITOR,),
)
"""A package with a value in every field."""
PACKAGES = (
    package("ingress", kind="Module"),
    package("prod.shop", tasks=(WAITING, task(2, running=False))),
    package("test.shop", message="two\nlines"),
)
NODES = (
    NodeSnapshot("ingress", "1.2.3", 10, "active", "Enable", "DynamicallyEnabled", "", ()),
    NodeSnapshot(
        "prod.shop",
        "1.2.3",
        999,
        "idle",
        "Enable",
        "EnabledByDefault",
        "waits for ingress",
        (DependencySnapshot("ingress", ">=1.2", optional=False), DependencySnapshot("metrics", "", optional=True)),
    ),
)
WAITING_NODE = NodeSnapshot(
    name="prod.web",
    version="2.0.0",
    order=999,
    state="idle",
    decision="Enable",
    reason="EnabledByDefault",
    message="waits for prod.shop",
    dependencies=(
        DependencySnapshot("metrics", "", optional=True),
        DependencySnapshot("prod.shop", "~1.2", optional=False),
    ),
    declared_order=500,
    run=4,
    failed=True,
    since=MOMENT,
    lacks=(LackSnapshot("package", "prod.shop", "idle"), LackSnapshot("tier", "000010", "waiting")),
    votes=(VoteSnapshot("Enable", "EnabledByDefault", ""), VoteSnapshot("Disable", "ByScript", "the script said no")),
    groups=(
        GroupSnapshot(
            "anyOf",
            "database",
            (DependencySnapshot("mysql", ">=8", optional=False), DependencySnapshot("postgres", "", optional=False)),
        ),
        GroupSnapshot("noneOf", "old", (DependencySnapshot("legacy", "<1", optional=False),)),
    ),
    dependents=("prod.front", "test.front"),
    subscriptions=("ingress",),
)
"""A node with a value in every field."""
MANIFEST = """\
---
# Source: shop/templates/secret.yaml
apiVersion: v1
kind: Secret
metadata:
  name: shop
data:
  password: aHVudGVyMg==
---
# Source: shop/templates/config.yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: shop
data:
  greeting: hello
"""
RENDERED = {
    "ingress": RenderSnapshot("", problem="", has_chart=False),
    "prod.shop": RenderSnapshot(MANIFEST, problem="", has_chart=True),
    "test.shop": RenderSnapshot("", problem="template: no such function", has_chart=True),
}

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_NAME = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
_TEXTS = st.lists(_TEXT, max_size=3).map(tuple)
_COUNT = st.integers(0, 2**31)
_SECONDS = st.floats(-1e6, 1e6)
_MOMENTS = st.datetimes(timezones=st.just(UTC))
JSON_VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=12,
)
JSON_OBJECTS: st.SearchStrategy[JsonObject] = st.dictionaries(_TEXT, JSON_VALUES, max_size=4)
TASKS = st.builds(
    TaskSnapshot,
    index=st.integers(1, 99),
    name=_TEXT,
    lane=_TEXT,
    enqueued_s_ago=_SECONDS,
    attempt=st.integers(0, 99),
    running=st.booleans(),
    retry_in_s=st.none() | _SECONDS,
    error=_TEXT,
    cause=_TEXT,
    parked=st.booleans(),
    waits_for=_TEXT,
)
CONDITIONS = st.builds(
    ConditionSnapshot, type=_NAME, status=_TEXT, reason=_TEXT, message=_TEXT, last_transition=_MOMENTS
)


HOOKS = st.builds(
    HookSnapshot,
    name=_NAME,
    bindings=st.lists(_TEXT, max_size=3).map(tuple),
    runs=st.integers(0, 2**31),
    last_run=st.none() | _MOMENTS,
    last_error=_TEXT,
    waiting=_COUNT,
    reduced=_COUNT,
)
MONITORS = st.builds(
    MonitorSnapshot,
    hook=_NAME,
    binding=_TEXT,
    listed=st.booleans(),
    locked=st.booleans(),
    objects=_COUNT,
    watches=_COUNT,
    waiting=_COUNT,
    events=_COUNT,
    dropped=_COUNT,
    last_error=_TEXT,
)
OPERATIONS = st.builds(OperationSnapshot, _NAME, _TEXTS, _TEXTS, _TEXTS, st.booleans())
_NEEDS = st.lists(
    st.builds(DependencySnapshot, name=_TEXT, constraint=_TEXT, optional=st.booleans()),
    max_size=3,
    unique_by=lambda each: each.name,
).map(lambda found: tuple(sorted(found, key=lambda each: each.name)))
NODE_SNAPSHOTS = st.builds(
    NodeSnapshot,
    name=_NAME,
    version=_TEXT,
    order=st.integers(-(2**31), 2**31),
    state=_NAME,
    decision=_TEXT,
    reason=_TEXT,
    message=_TEXT,
    dependencies=_NEEDS,
    declared_order=st.integers(-(2**31), 2**31),
    run=_COUNT,
    failed=st.booleans(),
    since=st.none() | _MOMENTS,
    lacks=st.lists(st.builds(LackSnapshot, _NAME, _TEXT, _TEXT), max_size=2).map(tuple),
    votes=st.lists(st.builds(VoteSnapshot, _NAME, _TEXT, _TEXT), max_size=2).map(tuple),
    groups=st.lists(st.builds(GroupSnapshot, st.sampled_from(["anyOf", "noneOf"]), _TEXT, _NEEDS), max_size=2).map(
        tuple
    ),
    dependents=_TEXTS,
    subscriptions=_TEXTS,
)


@st.composite
def packages(draw: st.DrawFn) -> PackageSnapshot:
    """Draw a random package. Its queue has the package's name, as in a daemon."""
    name = draw(_NAME)
    return PackageSnapshot(
        name=name,
        kind=draw(st.sampled_from(["Application", "Module"])),
        namespace=draw(_TEXT),
        package=draw(_TEXT),
        version=draw(_TEXT),
        digest=draw(_TEXT),
        release_revision=draw(st.integers(0, 2**31)),
        state=draw(_TEXT),
        message=draw(_TEXT),
        tip=draw(_TEXT),
        settings=draw(JSON_OBJECTS),
        conditions=tuple(draw(st.lists(CONDITIONS, max_size=3))),
        queue=QueueSnapshot(name, tuple(draw(st.lists(TASKS, max_size=3)))),
        installed_version=draw(_TEXT),
        installed_digest=draw(_TEXT),
        values=draw(JSON_OBJECTS),
        hooks=tuple(draw(st.lists(HOOKS, max_size=2))),
        suspended=draw(st.booleans()),
        maintenance=draw(_TEXT),
        progress=draw(st.none() | st.builds(ProgressSnapshot, _COUNT, _COUNT, _TEXTS)),
        warnings=draw(_TEXTS),
        unmatched=draw(_TEXTS),
        urls=draw(_TEXTS),
        drift=draw(_TEXTS),
        crds=draw(st.none() | _TEXTS),
        waits_for=draw(_TEXTS),
        operations=tuple(draw(st.lists(OPERATIONS, max_size=2))),
        monitors=tuple(draw(st.lists(MONITORS, max_size=2))),
    )


def all_statistics() -> st.SearchStrategy[StatisticsSnapshot]:
    """Return a strategy for statistics."""
    slots = st.builds(SlotsSnapshot, _TEXT, _COUNT, _COUNT, _COUNT)
    pools = st.none() | st.builds(PoolSnapshot, _COUNT, _COUNT, _COUNT)
    return st.builds(
        StatisticsSnapshot,
        tasks=st.builds(TaskCounts, *[_COUNT] * 9),
        slots=st.lists(slots, max_size=4, unique_by=lambda each: each.kind).map(tuple),
        trying_crds=_TEXTS,
        schedules=st.builds(SchedulesSnapshot, _COUNT, _COUNT, st.none() | _MOMENTS),
        monitors=st.builds(MonitorCounts, *[_COUNT] * 7),
        filters=pools,
        rules=pools,
        store=st.none() | st.builds(StoreSnapshot, _COUNT, _COUNT, _COUNT),
        warm=pools,
        charts=pools,
        renderer=_TEXT,
    )


POOLS = (
    WarmPoolSnapshot(
        "/usr/bin/python3", "serving", 4, 3, 1, 0, 90, 2, 0, 1, 0, 1, memory_bytes=32 << 20, memory_limit_bytes=1 << 30
    ),
    WarmPoolSnapshot("/usr/bin/python3 #2", "unfit", 4, 0, 0, 0, 0, 0, 0, 0, 7, 5, "it has no os.fork"),
    WarmPoolSnapshot(
        "shop hooks/serve", "serving", 2, 1, 1, 0, 7, 0, 0, 0, 0, 0, "", "persistent", 0, 0, 9 << 20, 1 << 30
    ),
)

REPOSITORIES = (
    RepositorySnapshot(
        "default",
        "https://registry.example/packages",
        "True",
        "Scanned",
        "3 versions of 1 package",
        datetime(2026, 1, 1, 12, tzinfo=UTC),
        2,
        (
            IndexSnapshot(
                "web-shop",
                ("1.2.0", "1.1.0", "1.0.0"),
                ("stable",),
                (
                    VersionSnapshot("1.2.0", f"sha256:{'ab' * 32}", (), "A shop", ">=1.30", ("a fix", "more")),
                    VersionSnapshot("1.1.0", f"sha256:{'cd' * 32}", ("stable",), deprecated="it leaks"),
                ),
            ),
        ),
    ),
    RepositorySnapshot("gone", "", "False", "RegistryFailed", "no answer\x1b[31m"),
)

ANSWERS: dict[str, SettingsAnswer] = {
    "prod.shop": InvalidSettings(
        "1.2.3",
        (Problem("", "something is missing"), Problem("sets[2].name", "must be short")),
        (Problem("old", "is deprecated"),),
    ),
    "test.shop": UnknownSettings("the package is not loaded yet"),
}

WHY_READY = ExplanationSnapshot("ingress", ready=True, causes=(), remedy="")
WHY = ExplanationSnapshot(
    "prod.shop",
    ready=False,
    causes=(
        CauseSnapshot("prod.shop", "waits for ingress", "", MOMENT),
        CauseSnapshot("ingress", "fails", "PackageHookFailed: hooks/a.sh: exit status 3; attempt 4"),
    ),
    remedy="look at the hook's lines in the daemon's log",
    also=("prod.shop needs metrics",),
)
HISTORY = HistorySnapshot(
    "prod.shop",
    (
        EventSnapshot(
            datetime(2026, 11, 21, 4, 3, tzinfo=UTC), "lifecycle", "wanted: shop 1.2.3", "requires update", "", "idle"
        ),
        EventSnapshot(
            datetime(2026, 11, 21, 4, 3, 1, 250_000, UTC),
            "queue",
            "Load is queued",
            "",
            "empty",
            "main: Load runs",
            decides=False,
        ),
        EventSnapshot(
            datetime(2026, 11, 21, 4, 3, 2, tzinfo=UTC),
            "status",
            "Loaded False",
            "PackageInvalid: no Chart.yaml\nin it",
            "Pending",
            "Failed",
        ),
    ),
    dropped=3,
)
HISTORIES = {"prod.shop": HISTORY}
EXPLANATIONS = {"ingress": WHY_READY, "prod.shop": WHY}
CAUSES = st.builds(CauseSnapshot, subject=_NAME, state=_NAME, message=_TEXT, since=st.none() | _MOMENTS)


def explanations() -> st.SearchStrategy[ExplanationSnapshot]:
    """Return a strategy for explanations of a package's state."""
    causes = st.lists(CAUSES, max_size=3).map(tuple)
    return st.builds(ExplanationSnapshot, _NAME, st.booleans(), causes, _TEXT, _TEXTS)


PROBLEMS = st.lists(st.builds(Problem, st.text(), st.text()), max_size=3).map(tuple)


def settings_answers() -> st.SearchStrategy[SettingsAnswer]:
    """Return a strategy for every kind of answer about settings."""
    valid = st.builds(ValidSettings, st.text(), PROBLEMS)
    return valid | st.builds(InvalidSettings, st.text(), PROBLEMS, PROBLEMS) | st.builds(UnknownSettings, st.text())


RESOURCES = (
    ResourceSnapshot(
        "prod.shop",
        "Deployment.apps",
        "apps/v1",
        "prod",
        "shop",
        "InProgress",
        "1 of 2 available",
        "Done",
        "",
        "/spec/replicas by kubectl",
        ("app=shop", "tier=web"),
    ),
    ResourceSnapshot("prod.shop", "ConfigMap", "v1", "prod", "shop", "Absent", "", "Error", "no quota\x1b[31m"),
    ResourceSnapshot("test.shop", "ClusterRole.rbac.authorization.k8s.io", "rbac/v1", "", "shop", "Current"),
)
CLUSTER_EVENTS = (
    ClusterEventSnapshot(
        "Warning", "Failed", "Application prod/shop", "hook failed\x1b[31m", 3, MOMENT, MOMENT, "wharfinger"
    ),
    ClusterEventSnapshot("Normal", "Installed", "Application prod/shop", "version 1.2.3 is installed"),
)
LOG = LogSnapshot(
    "prod.shop",
    (
        LogLineSnapshot(7, MOMENT, "info", "installing 1.2.3"),
        LogLineSnapshot(9, MOMENT, "warning", "a.sh: red \x1b[31m", "hooks/a.sh"),
    ),
    2,
    "run-1",
)
DIFFERENCE = DifferenceSnapshot(
    "prod.shop",
    (
        ObjectChangeSnapshot(
            "Deployment.apps prod/shop",
            "change",
            "dry run",
            (FieldChangeSnapshot("/spec/replicas", "1", "2"), FieldChangeSnapshot("/metadata/labels/new", "", '"x"')),
        ),
        ObjectChangeSnapshot("ConfigMap prod/new", "create", "chart", note="its namespace comes first"),
        ObjectChangeSnapshot("ConfigMap prod/old", "delete", "dry run"),
    ),
    4,
    ("2 hooks would run",),
)
HOOK_SNAPSHOTS = (
    HookSnapshotsSnapshot("hooks/001-config.sh", {"configmaps": [{"filterResult": {"name": "a"}}], "none": []}),
)
DAEMON_TASKS = (
    DaemonTaskSnapshot("main", 0),
    DaemonTaskSnapshot("queue prod.shop", 1, "prod.shop", "version changed", "slots.use"),
)
