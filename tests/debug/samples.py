"""Snapshots to look at: ordinary ones, and ones a stranger made up."""

from datetime import UTC, datetime

from hypothesis import strategies as st

from wharfinger.formats.json_value import JsonObject, JsonValue
from wharfinger.formats.openapi_schema import Problem
from wharfinger.runtime.inspector import (
    ConditionSnapshot,
    DaemonSnapshot,
    DependencySnapshot,
    HookSnapshot,
    InvalidSettings,
    NodeSnapshot,
    PackageSnapshot,
    QueueSnapshot,
    RenderSnapshot,
    SettingsAnswer,
    TaskSnapshot,
    UnknownSettings,
    ValidSettings,
)

MOMENT = datetime(2026, 5, 17, 12, 30, 45, 123456, tzinfo=UTC)
HOSTILE = "\x1b[31mred\x1b[0m\r\n\tnext \x9b2J \u202egnp.exe \x00\x07 \ud800 ✓ 漢字"

DAEMON = DaemonSnapshot(
    version="0.1.0", pid=4711, started=MOMENT, ready=True, cluster="https://127.0.0.1:6443", packages=2, draining=False
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
WAITING = task(1, error="connection refused", retry_in_s=14.25, running=False)
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
)
NODE_SNAPSHOTS = st.builds(
    NodeSnapshot,
    name=_NAME,
    version=_TEXT,
    order=st.integers(-(2**31), 2**31),
    state=_NAME,
    decision=_TEXT,
    reason=_TEXT,
    message=_TEXT,
    dependencies=st.lists(
        st.builds(DependencySnapshot, name=_TEXT, constraint=_TEXT, optional=st.booleans()),
        max_size=3,
        unique_by=lambda each: each.name,
    ).map(lambda found: tuple(sorted(found, key=lambda each: each.name))),
)


@st.composite
def packages(draw: st.DrawFn) -> PackageSnapshot:
    """Any package; its queue has its name, as the runtime's have."""
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
    )


ANSWERS: dict[str, SettingsAnswer] = {
    "prod.shop": InvalidSettings(
        "1.2.3",
        (Problem("", "something is missing"), Problem("sets[2].name", "must be short")),
        (Problem("old", "is deprecated"),),
    ),
    "test.shop": UnknownSettings("it is not loaded yet"),
}

PROBLEMS = st.lists(st.builds(Problem, st.text(), st.text()), max_size=3).map(tuple)


def settings_answers() -> st.SearchStrategy[SettingsAnswer]:
    """Everything that can be answered about settings."""
    valid = st.builds(ValidSettings, st.text(), PROBLEMS)
    return valid | st.builds(InvalidSettings, st.text(), PROBLEMS, PROBLEMS) | st.builds(UnknownSettings, st.text())
