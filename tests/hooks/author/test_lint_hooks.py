"""Checks of hook configurations against the contract. Each finding names a line of the configuration that the hook prints."""

from pathlib import Path

import pytest

from tests.hooks.support.linting import asking, lint, package
from tests.hooks.support.scripts import batch
from wharfinger.formats.json.value import JsonObject

TWO = """\
configVersion: v1
kubernetes:
- name: a
  kind: Pod
  executeHookOnEvent: [{first}]
- name: b
  kind: Pod
  executeHookOnEvent:
  - Added
  - {second}
"""


def told(capsys: pytest.CaptureFixture[str], tmp_path: Path, config: str) -> list[str]:
    """Return the findings about the configuration of one hook, without the hook's name."""
    _, found = lint(capsys, package(tmp_path, {"hooks/a.sh": asking(config, rest="# snapshots")}), "--no-templates")
    return [line.removeprefix("hooks/a.sh --config:") for line in found]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("config", "found"),
    [
        ("configVersion: v1\nonStartup: 1", []),
        ("configVersion: v1\nonStartup: a", ['2: error: onStartup must be of type integer: "string"']),
        ("onStartup: 1\n\nconfigVersion: v9", ["3: error: 'configVersion' value 'v9' is unsupported"]),
        ("configVersion: v1\na: b: c", ["2: error: mapping values are not allowed in this context"]),
        ("[1]", ["1: error: expected a mapping with at least one binding, found a list"]),
        (
            "configVersion: v1\nkubernetes:\n- kind: Pod\n- {}",
            ["4: error: kubernetes.kind is required"],
        ),
        (
            TWO.format(first="Added", second="Deletd"),
            ["8: error: kubernetes.executeHookOnEvent should be one of [Added Modified Deleted]"],
        ),
        (
            TWO.format(first="Deletd", second="Deletd"),
            [
                "5: error: kubernetes.executeHookOnEvent should be one of [Added Modified Deleted]",
                "8: error: kubernetes.executeHookOnEvent should be one of [Added Modified Deleted]",
            ],
        ),
        (
            "configVersion: v1\nkubernetes:\n- kind: Pod\n- kind: Pod\n  lableSelector: {}\n  jqFilter: '.a'",
            ["5: error: kubernetes.lableSelector is a forbidden property"],
        ),
        (
            "configVersion: v1\nschedule:\n- crontab: '* * * * *'\n- name: x\n  crontab: '* *'",
            ["5: error: schedule.crontab is invalid: schedule '* *': expected 5 or 6 fields, found 2"],
        ),
        (
            "configVersion: v1\nschedule:\n- crontab: '@daily'\n  includeSnapshotsFrom:\n  - gone",
            ["4: error: schedule.includeSnapshotsFrom is invalid: 'gone' binding name not found"],
        ),
        (
            "configVersion: v1\nkubernetes:\n- kind: Pod\n- kind: Pod\n  name: b\n  jqFilter: '.a |'",
            ["6: error: kubernetes.jqFilter is invalid: jq: error: syntax error, unexpected end of file"],
        ),
        ("onKubernetesEvent:\n- kind: Pod\n- event: [added]", ["3: error: onKubernetesEvent"] * 2),
        (
            "configVersion: v1\nbeforeAll: 1",
            ["2: error: beforeAll is a forbidden property: only global hooks may have it"],
        ),
    ],
)
def test_configuration_errors_are_reported_by_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], config: str, found: list[str]
) -> None:
    lines = told(capsys, tmp_path, config)
    assert len(lines) == len(found), lines
    assert all(line.startswith(beginning) for line, beginning in zip(lines, found, strict=True)), lines


KEPT = "\n- {name: kept, kind: Pod, executeHookOnEvent: [], executeHookOnSynchronization: false}"


@pytest.mark.parametrize(
    ("config", "found"),
    [
        (
            f"configVersion: v1\nonStartup: 1\nkubernetes:{KEPT}",
            [
                "4: warning: the binding 'kept' is useless: no event of it runs the hook, and no binding includes its snapshot"
            ],
        ),
        (
            f"configVersion: v1\nkubernetes:{KEPT}",
            [
                "1: warning: no event runs the hook: none of its bindings causes a run",
                "3: warning: the binding 'kept' is useless: no event of it runs the hook, and no binding includes its snapshot",
            ],
        ),
        (f"configVersion: v1\nbeforeHelm: 1\nkubernetes:{KEPT}", []),
        (f"configVersion: v1\nschedule: [{{crontab: '@daily', includeSnapshotsFrom: [kept]}}]\nkubernetes:{KEPT}", []),
        (
            "configVersion: v1\nkubernetes:\n- {name: a, kind: Pod}\n- kind: Pod\n  includeSnapshotsFrom:\n  - a\n  - a",
            ["7: warning: includeSnapshotsFrom: 'a' is listed twice"],
        ),
        (
            (
                "configVersion: v1\nkubernetes:\n- {name: a, kind: Pod, group: g}\nschedule:\n- crontab: '@daily'\n"
                "  group: g\n  includeSnapshotsFrom: [a]"
            ),
            ["7: warning: includeSnapshotsFrom: 'a' is already included by the group 'g'; remove it from the list"],
        ),
        (
            (
                "configVersion: v1\nonStartup: 1\nkubernetes:\n- {name: a, kind: Pod}\n- name: b\n  kind: Pod\n"
                "  executeHookOnEvent: []\n  executeHookOnSynchronization: false\n  includeSnapshotsFrom: [a]"
            ),
            [
                "5: warning: the binding 'b' is useless: no event of it runs the hook, and no binding includes its snapshot",
                (
                    "9: warning: includeSnapshotsFrom: no event runs the hook for this binding, so the "
                    "snapshots are never read; leave it out"
                ),
            ],
        ),
        (
            "configVersion: v1\nkubernetes:\n- kind: Pod\n  resynchronizationPeriod: never",
            ["2: warning: kubernetes.resynchronizationPeriod is ignored: "],
        ),
    ],
)
def test_ineffective_configuration_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], config: str, found: list[str]
) -> None:
    lines = told(capsys, tmp_path, config)
    assert len(lines) == len(found), lines
    assert all(line.startswith(beginning) for line, beginning in zip(lines, found, strict=True)), lines


def test_a_hook_whose_config_run_fails_is_reported_by_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = package(tmp_path, {"hooks/a.sh": "#!/bin/bash\necho oh >&2\nexit 3\n"})
    assert lint(capsys, folder, "--no-templates") == (
        1,
        ["hooks/a.sh:1: error: cannot get its configuration: --config ended with exit status 3: oh"],
    )


def test_hooks_in_one_executable_are_distinguished(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = package(
        tmp_path, {"package.yaml": "name: web\nversion: 1.0.0\nbatchHooks: [hooks/main]\n", "hooks/x.md": ""}
    )
    document: JsonObject = {
        "version": "v1",
        "hooks": [
            {"metadata": {"name": "one"}, "onStartup": 1},
            {"metadata": {"name": "two"}, "kubernetes": [{"kind": "Pod", "jqFilter": ".a |"}]},
            {"metadata": {"name": "three"}},
        ],
        "readiness": {"metadata": {"name": "ready"}},
        "has_settings_check": True,
    }
    batch(folder / "hooks", document)
    code, found = lint(capsys, folder, "--no-templates")
    assert code == 1
    assert [line.partition(" is invalid")[0] for line in found] == [
        "hooks/main hook config:1: error: hooks/main:two:1: kubernetes.jqFilter",
        "hooks/main hook config:1: warning: hooks/main-readiness: no event runs the hook: none of its bindings causes a run",
        "hooks/main hook config:1: warning: hooks/main:three:2: no event runs the hook: none of its bindings causes a run",
    ]
    document["hooks"] = [{"metadata": {"name": "one"}, "onStartup": "a"}]
    batch(folder / "hooks", document)
    code, found = lint(capsys, folder, "--no-templates")
    assert found == ['hooks/main hook config:1: error: one:0: onStartup must be of type integer: "string"']
    document["readiness"] = {"onStartup": "a"}
    document["hooks"] = []
    batch(folder / "hooks", document)
    code, found = lint(capsys, folder, "--no-templates")
    assert [line[: len("hooks/main hook config:1: error:")] for line in found] == ["hooks/main hook config:1: error:"]


def test_missing_batch_hook_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = package(
        tmp_path, {"package.yaml": "name: web\nversion: 1.0.0\nbatchHooks: [hooks/main]\n", "hooks/x.md": ""}
    )
    code, (found,) = lint(capsys, folder, "--no-templates")
    assert (code, found.startswith("hooks/main: error: hook hooks/main: it is declared in batchHooks")) == (1, True)


UNREAD = "includeSnapshotsFrom: the hook reads no snapshots; remove the field, unless a file that the hook sources does"


def test_unread_snapshots_are_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = "configVersion: v1\nkubernetes:\n- {name: a, kind: Pod}\nschedule:\n- crontab: '@daily'\n  includeSnapshotsFrom: [a]"
    folder = package(tmp_path, {"hooks/a.sh": asking(config)})
    assert lint(capsys, folder, "--no-templates") == (
        0,
        [f"hooks/a.sh --config:6: warning: {UNREAD}"],
    )
    folder = package(tmp_path, {"hooks/a.sh": asking(config, rest="jq '.[0].snapshots' $BINDING_CONTEXT_PATH")})
    assert lint(capsys, folder, "--no-templates") == (0, [])
