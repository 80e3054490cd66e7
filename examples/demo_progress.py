"""The progress that the demo prints: each change of a package's stages, as the daemon's debug socket reports it."""

import http.client
import json
import socket
from pathlib import Path
from typing import TypedDict, cast

STAGES = (
    "ReadyOnFilesystem",
    "Loaded",
    "RequirementsMet",
    "Configured",
    "HooksProcessed",
    "ManifestsApplied",
    "Scaled",
)


class Condition(TypedDict):
    """One stage of a package."""

    type: str
    status: str
    reason: str
    message: str
    lastTransitionTime: str


class Status(TypedDict):
    """The status of a package."""

    state: str
    message: str
    tip: str
    conditions: list[Condition]


class Installed(TypedDict):
    """The version of a package that is installed in the cluster."""

    version: str
    digest: str


class Hook(TypedDict):
    """The runs of a hook."""

    name: str
    runs: int


class Package(TypedDict, total=False):
    """The parts of a package in the output of `wharfinger dump -o json` that the demo uses."""

    name: str
    status: Status
    installed: Installed
    hooks: list[Hook]


class Daemon:
    """A client of the daemon's debug socket. It makes the requests of `wharfinger dump` without starting a process for each."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def packages(self) -> dict[str, Package]:
        """Return all packages by name, or none if the daemon does not answer."""
        dump = self._get("/api/v1/packages/dump?output=json")
        sections = [dump.get(kind) for kind in ("apps", "modules")]
        found: dict[str, Package] = {}
        for section in sections:
            if isinstance(section, dict):
                found |= cast("dict[str, Package]", section)
        return found

    def package(self, name: str) -> Package:
        """Return one package, or an empty one if the name is unknown."""
        return self.packages().get(name, {})

    def _get(self, path: str) -> dict[str, object]:
        connection = UnixConnection(self.path)
        try:
            connection.request("GET", path)
            return cast("dict[str, object]", json.loads(connection.getresponse().read()))
        except (OSError, http.client.HTTPException, ValueError):
            return {}
        finally:
            connection.close()


class UnixConnection(http.client.HTTPConnection):
    """An HTTP connection over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("wharfinger", timeout=10)
        self.path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


class Progress:
    """The progress of some packages. It prints a line for each change of a stage or state, and records which stages have
    changed.
    """

    def __init__(self, daemon: Daemon, names: tuple[str, ...]) -> None:
        self.daemon = daemon
        self.names = names
        self.moved: dict[str, list[str]] = {name: [] for name in names}
        self.latest = daemon.packages()

    def look(self) -> None:
        """Request the packages, and print what has changed since the last request."""
        packages = self.daemon.packages()
        for name in self.names:
            before, now = self.latest.get(name, {}), packages.get(name, {})
            known = stages(before)
            for stage, condition in stages(now).items():
                if condition != known.get(stage) and (condition["message"] or condition["status"] != "Unknown"):
                    words = condition["status"] if condition["status"] == "True" else said(condition)
                    print(f"  {name:<20}{stage:<19}{words}", flush=True)
                    if stage not in self.moved[name]:
                        self.moved[name].append(stage)
            if "status" in now and state(now) != state(before):
                print(f"  {name:<20}* {state(now)}", flush=True)
        self.latest = packages

    def all_ready(self) -> bool:
        """Print the changes, and return whether every package is Ready."""
        self.look()
        return all(is_ready(self.latest.get(name, {})) for name in self.names)


def stages(package: Package) -> dict[str, Condition]:
    """Return the stages of a package by name, in the order of the pipeline."""
    found = (
        {condition["type"]: condition for condition in package["status"]["conditions"]} if "status" in package else {}
    )
    return {stage: found[stage] for stage in STAGES if stage in found}


def since(package: Package, stage: str) -> str:
    """Return the time at which a stage changed last, or an empty text if it is unknown."""
    condition = stages(package).get(stage)
    return condition["lastTransitionTime"] if condition else ""


def runs(package: Package, hook: str) -> int:
    """Return the number of runs of a package's hook."""
    return sum(each["runs"] for each in package.get("hooks", []) if each["name"] == hook)


def is_ready(package: Package) -> bool:
    """Return whether the package is Ready."""
    return "status" in package and package["status"]["state"] == "Ready"


def state(package: Package) -> str:
    """Return the state and its message, with the tip if there is one: ``Ready: version 1.0.0 is installed and ready``."""
    if "status" not in package:
        return ""
    status = package["status"]
    return f"{status['state']}: {status['message']}" + (f"  (tip: {status['tip']})" if status["tip"] else "")


def said(condition: Condition) -> str:
    """Return a condition as text: ``Unknown ApplyingManifests: rendering the chart``."""
    return f"{condition['status']}  {condition['reason']}: {condition['message']}"
