"""`wharfinger plan`, as users run it."""

import io
import json
import os
import signal
import subprocess
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.programs import PATIENCE_S, ROOT, WHARFINGER, program
from tests.runtime.support.planned import resource, write_package, write_resources
from wharfinger.__main__ import main
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.packages.registry.oci_layout import OciLayout
from wharfinger.packages.registry.pusher import load_package, push_package
from wharfinger.runtime.plan.commands import Progress, planned_text
from wharfinger.runtime.plan.input import PlanInputError


@dataclass(frozen=True, slots=True)
class Place:
    """A folder of packages, and a file with resources."""

    root: Path

    def package(self, name: str, version: str = "1.0.0", kind: str = "", **said: JsonValue) -> Path:
        return write_package(self.root / "packages", name, version, kind, **said)

    def resources(self, *documents: JsonObject) -> None:
        (self.root / "packages").mkdir(exist_ok=True)
        write_resources(self.root / "apps.yaml", *documents)

    def command(self, *more: str) -> tuple[str, ...]:
        return ("plan", "-f", f"{self.root}/apps.yaml", "--packages", f"{self.root}/packages", *more)

    def run(self, *more: str) -> tuple[int, str, str]:
        """Run the command in this process, which is faster, and return its exit code, stdout and stderr."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            try:
                code = main(self.command(*more))
            except SystemExit as usage:
                code = int(usage.code or 0)
        return code, out.getvalue(), err.getvalue()

    def run_really(self, *more: str) -> tuple[int, str, str]:
        """Run the command as a program, and return its exit code, stdout and stderr."""
        done = subprocess.run(
            (*WHARFINGER, *self.command(*more)),
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


NEEDS_DB: JsonObject = {"applications": {"mandatory": [{"name": "data/db", "constraint": ">=15"}]}}
SHOP = resource("web/shop")
DATABASE = resource("data/db", "postgres", "15.0.0")

# --- the command -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_plan_in_which_all_packages_are_on_exits_with_0(place: Place) -> None:
    place.package("shop", kind="Application", requirements={**NEEDS_DB, "modules": {"ingress": ">=1"}})
    place.package("postgres", "15.0.0", "Application")
    place.package("ingress", "1.4.0", "Module", critical=True, weight=10)
    place.resources(SHOP, DATABASE, resource("ingress", version="1.4.0"))
    code, out, err = place.run_really()
    assert (code, err) == (0, "")
    assert [line.split() for line in out.splitlines()[1:4]] == [
        ["1", "10", "ingress", "Module", "ingress", "1.4.0", "on"],
        ["2", "999", "data.db", "Application", "postgres", "15.0.0", "on"],
        ["3", "999", "web.shop", "Application", "shop", "1.0.0", "on", "data.db,", "ingress"],
    ]
    assert out.endswith("\nall wanted packages would be on: 3 packages in 2 tiers\n")


def test_a_missing_dependency_is_reported_with_its_cause(place: Place) -> None:
    place.package("shop", requirements=NEEDS_DB, kind="Application")
    place.resources(SHOP)
    code, out, err = place.run()
    assert (code, err) == (1, "")
    assert "web.shop would not be on: DependencyNotEnabled: dependency data.db (>=15) is not installed\n" in out
    assert "  data.db is not installed: there is no resource of that name\n" in out
    assert out.endswith("\n1 of 1 wanted packages would not be on\n")


def test_an_old_dependency_is_reported_with_its_version(place: Place) -> None:
    place.package("shop", requirements=NEEDS_DB, kind="Application")
    place.package("postgres", "14.2.0", "Application")
    place.resources(SHOP, resource("data/db", "postgres", "14.2.0"))
    code, out, _ = place.run()
    assert code == 1
    assert (
        "web.shop would not be on: DependencyVersionMismatch: dependency data.db (>=15) is not met by version 14.2.0\n"
        in out
    )


def test_a_dependency_cycle_is_reported_for_each_package(place: Place) -> None:
    for name, needed in (("a", "b"), ("b", "c"), ("c", "a")):
        place.package(name, kind="Module", requirements={"modules": {needed: "*"}})
    place.resources(resource("a"), resource("b"), resource("c"))
    code, out, _ = place.run()
    assert code == 1
    for name in "abc":
        assert f"{name} would not be on: DependencyCycle: dependency cycle through: a, b, c (a → b → c → a)\n" in out


def test_unmet_groups_are_reported(place: Place) -> None:
    groups: JsonObject = {
        "modules": {
            "anyOf": [{"name": "storage", "modules": [{"name": "ceph"}, {"name": "nfs", "constraint": ">=2"}]}],
            "noneOf": [{"name": "others", "modules": [{"name": "haproxy"}]}],
        }
    }
    place.package("shop", kind="Application", requirements=groups)
    place.package(
        "blog",
        kind="Application",
        requirements={"modules": {"noneOf": [{"name": "others", "modules": [{"name": "nfs"}]}]}},
    )
    place.package("nfs", "1.0.0", "Module")
    place.resources(SHOP, resource("web/blog"), resource("nfs"))
    code, out, _ = place.run()
    assert code == 1
    assert (
        "web.shop would not be on: AnyOfDependenciesUnmet: web.shop needs one package of the group 'storage': "
        "ceph is not installed; nfs (>=2) has version 1.0.0\n"
    ) in out
    assert (
        "web.blog would not be on: NoneOfDependenciesUnmet: web.blog excludes nfs (group 'others'), but version 1.0.0 is on\n"
    ) in out


def test_versions_of_kubernetes_and_the_platform_block_packages(place: Place) -> None:
    place.package("kube", kind="Application", requirements={"kubernetes": ">=1.30", "platform": ">=1.60"})
    place.package("early", kind="Module", critical=True, weight=5)
    editions: JsonObject = {"editions": {"ee": {"available": True, "enabledInBundles": ["Default"]}}}
    place.package("bundled", kind="Module", critical=True, weight=6, licensing=editions)
    place.package("other", kind="Module", critical=True, weight=6)
    place.resources(resource("web/kube"), resource("early", enabled=True), resource("bundled"), resource("other"))

    def states(*more: str) -> tuple[int, dict[str, str]]:
        code, out, _ = place.run("-o", "json", *more)
        return code, {name: f"{each['state']} {each['reason']}" for name, each in json.loads(out)["packages"].items()}

    code, found = states()
    assert (code, found["web.kube"], found["other"]) == (1, "blocked VersionLookupFailed", "on DynamicallyEnabled")
    code, found = states("--kubernetes-version", "1.29", "--platform-version", "1.60")
    assert (code, found["web.kube"]) == (1, "blocked KubernetesRequirementsUnmet")
    versions = ("--kubernetes-version", "v1.31.1+k3s1", "--platform-version", "1.60")
    code, found = states(*versions, "--edition", "ee", "--bundle", "Default")
    assert (code, found) == (
        0,
        {
            "web.kube": "on EnabledByDefault",
            "early": "on DynamicallyEnabled",
            "bundled": "on EnabledInBundle",
            "other": "off DisabledByDefault",
        },
    )
    code, found = states(*versions, "--not-bootstrapped")
    assert (code, found["web.kube"], found["early"]) == (
        1,
        "blocked BootstrapRequirementsUnmet",
        "on DynamicallyEnabled",
    )


def test_an_unreadable_package_three_levels_down_is_reported(place: Place) -> None:
    place.package("shop", kind="Application", requirements={"modules": {"api": "*"}})
    place.package("api", kind="Module", requirements={"modules": {"base": "*"}})
    folder = place.package("base", kind="Module")
    (folder / "package.yaml").write_text("version: 1.0.0\nrequirments: {}\n")
    place.resources(SHOP, resource("api"), resource("base"))
    code, out, _ = place.run("-o", "yaml")
    assert code == 1
    document = read_yaml(out, what="plan")
    assert isinstance(document, dict)
    packages = document["packages"]
    assert isinstance(packages, dict)
    base, shop = packages["base"], packages["web.shop"]
    assert isinstance(base, dict)
    assert isinstance(shop, dict)
    assert base["reason"] == "ArtifactInvalid"
    assert "requirments" in str(base["message"])
    assert str(base["message"]) in str(shop["causes"])


def test_an_enabled_script_is_not_run(place: Place) -> None:
    folder = place.package("db", kind="Module")
    script = folder / "enabled"
    script.write_text(f"#!/bin/sh\ntouch {place.root}/asked\n")
    script.chmod(0o755)
    place.resources(resource("db"))
    code, out, _ = place.run()
    assert code == 0
    assert "\ndb: its enabled script was not run\n" in out
    assert not (place.root / "asked").exists()


def test_several_versions_are_read_from_a_layout(place: Place) -> None:
    async def push() -> None:
        for version in ("1.0.0", "2.0.0"):
            source = write_package(place.root / version, "shop", version, "Application")
            package = await load_package(source, "shop")
            await push_package(package, OciLayout(place.root / "packages"), "shop", package.tag)

    trio.run(push)
    place.resources(SHOP, resource("team/shop", "shop", "2.0.0"), resource("old/shop", "shop", "0.9.0"))
    code, out, _ = place.run()
    assert code == 1
    assert "old.shop would not be on: ArtifactNotFound: " in out
    assert out.endswith("\n1 of 3 wanted packages would not be on\n")


def test_invalid_resources_are_reported_with_file_and_document(place: Place) -> None:
    place.resources(SHOP, resource("web/blog", replicas=3), resource("web/wiki", version=""))
    code, out, err = place.run()
    assert (code, out) == (2, "")
    lines = err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"error: {place.root}/apps.yaml, document 2 (Application web/blog): spec.replicas: ")
    assert lines[1].startswith(
        f"error: {place.root}/apps.yaml, document 3 (Application web/wiki): spec.packageVersion: "
    )


@pytest.mark.slow
def test_resources_are_read_from_standard_input(place: Place) -> None:
    place.package("db", kind="Module")
    place.resources()
    document = json.dumps(resource("db"))
    done = subprocess.run(
        (*WHARFINGER, "plan", "-f", "-", "--packages", f"{place.root}/packages"),
        cwd=ROOT,
        input=document,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "1      999    db     Module" in done.stdout


def test_sixty_packages_are_planned_in_order(place: Place) -> None:
    for number in range(60):
        needed: JsonObject = {"modules": {f"m{number - 1:02}": ">=1"}} if number % 10 else {}
        place.package(f"m{number:02}", kind="Module", requirements=needed, critical=True, weight=number // 10)
    place.resources(*(resource(f"m{number:02}") for number in range(60)))
    code, out, err = place.run("-o", "json")
    assert (code, err) == (0, "")
    assert json.loads(out)["order"] == [f"m{number:02}" for number in range(60)]


@pytest.mark.slow
def test_an_interrupted_plan_leaves_a_clean_terminal(place: Place) -> None:
    """The plan reads a pipe to which nobody writes, as if a package were on a disk that does not respond."""
    place.resources(SHOP)
    os.mkfifo(place.root / "typed.yaml")
    with (
        program(
            *WHARFINGER, "plan", "-f", f"{place.root}/typed.yaml", "--packages", f"{place.root}/packages"
        ) as running,
        (place.root / "typed.yaml").open("wb"),
    ):  # open() waits until the plan opens the pipe to read it
        running.process.send_signal(signal.SIGINT)
        assert running.wait() == 130
    assert running.lines == []


def test_the_documentation_shows_the_printed_plan(place: Place) -> None:
    place.package("shop", "1.2.3", "Application", requirements=NEEDS_DB)
    place.package("blog", "2.0.1", "Application", requirements={"modules": {"ingress": ">=1"}})
    place.package("postgres", "15.0.0", "Application", requirements={"kubernetes": ">=1.30"})
    place.package("ingress", "1.4.0", "Module", critical=True, weight=10)
    shop, blog = resource("web/shop", version="1.2.3"), resource("web/blog", version="2.0.1")
    place.resources(shop, blog, DATABASE, resource("ingress", version="1.4.0"))
    page = (ROOT / "docs" / "plan.md").read_text()
    command, _, shown = page.partition("```console\n$ ")[2].partition("\n```")[0].partition("\n")
    assert command == "wharfinger plan -f apps/ --packages packages/ --kubernetes-version 1.29"
    code, out, _ = place.run("--kubernetes-version", "1.29")
    assert (code, out) == (1, f"{shown}\n")


# --- in this process -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (("--kubernetes-version", "new"), "--kubernetes-version: 'new' is not a version"),
        (("--platform-version", "new"), "--platform-version: 'new' is not a version"),
        (("--edition", "ee"), "--edition and --bundle are used only together"),
        (("--namespace", "A.b"), "--namespace 'A.b': expected the name of a namespace"),
        (("--packages", "/nowhere"), "--packages /nowhere: not a folder; name an existing one"),
        (("--packages", "x" * 300), f"--packages {'x' * 300}: File name too long"),
        (("-f", "x" * 300), f"{'x' * 300}: cannot be read: File name too long"),
        (("-f", "/nowhere"), "/nowhere: cannot be read: No such file or directory"),
    ],
)
def test_wrong_usage_is_reported_in_one_line(
    place: Place, more: tuple[str, ...], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place.resources()
    assert main([*place.command(), *more]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"error: {expected}")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("words", [("plan",), ("plan", "-f", "x"), ("plan", "--packages", "/")])
def test_resources_and_packages_are_required(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*words])
    assert ended.value.code == 2
    assert "required" in capsys.readouterr().err


def test_a_missing_temporary_folder_is_an_error(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place.resources()
    monkeypatch.setattr("tempfile.tempdir", str(place.root / "gone"))
    assert main([*place.command()]) == 2
    assert capsys.readouterr().err.startswith("error: making a folder for unpacked packages: ")


def test_the_default_namespace_of_applications_is_an_option(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.package("shop", kind="Application")
    place.resources({**SHOP, "metadata": {"name": "shop"}})
    assert main([*place.command("-n", "team", "-o", "json")]) == 0
    assert json.loads(capsys.readouterr().out)["order"] == ["team.shop"]


# --- progress ----------------------------------------------------------------------------------------------------------------


def test_progress_counts_packages() -> None:
    progress = Progress()
    assert progress.text() == "0 of … packages read"
    progress.set(11, 12)
    assert progress.text() == "11 of 12 packages read"


def test_the_plan_tool_returns_the_output_of_the_command(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.package("web")
    place.resources(resource("web"))
    files = [tmp_path / "apps.yaml"], tmp_path / "packages"
    assert trio.run(planned_text, *files, "1.34") == place.run("--kubernetes-version", "1.34")[1]
    with pytest.raises(PlanInputError, match="kubernetes_version"):
        trio.run(planned_text, *files, "new")
