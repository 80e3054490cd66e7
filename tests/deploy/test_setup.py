"""The real set-up script (``deploy/setup.sh``) on a separate tree, on machines that lack programs, and after an interruption.

The project in the tree has no dependencies, so nothing is downloaded. PATH contains only the programs of a minimal machine, and
the imitations of apt-get, sudo and id that a test needs.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.programs import ROOT

pytestmark = [pytest.mark.unmeasured, pytest.mark.slow]

COREUTILS = (
    "sh",
    "env",
    "cat",
    "cksum",
    "dirname",
    "tr",
    "rm",
    "true",
    "chmod",
    "bash",
    "jq",
    "openssl",
    "systemd-analyze",
    "bwrap",
    "zsh",
    "fish",
)
PROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "nothing"
version = "1"
[project.optional-dependencies]
dev = []
"""
BACKEND = """\
import zipfile

def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(f"{wheel_directory}/nothing-1-py3-none-any.whl", "w") as wheel:
        info = "nothing-1.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: nothing\\nVersion: 1\\nProvides-Extra: dev\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return "nothing-1-py3-none-any.whl"
"""


@dataclass
class Machine:
    """A machine with a checkout in a folder whose name contains a space, and with the programs on its PATH."""

    tree: Path
    programs: Path
    calls: Path
    environment: dict[str, str] = field(default_factory=dict)

    def has(self, name: str, script: str) -> None:
        """Put a program on PATH that records its arguments and then runs ``script``."""
        path = self.programs / name
        path.write_text(f'#!/bin/sh\necho {name} "$@" >>"{self.calls}"\n{script}\n')
        path.chmod(0o755)

    def setup(self) -> tuple[int, str]:
        """Run the set-up script, and return its exit code and its whole output."""
        done = subprocess.run(
            [self.tree / "deploy" / "setup.sh"],
            cwd=self.tree.parent,
            env={"PATH": str(self.programs), "HOME": str(self.tree), "PIP_NO_INDEX": "1", **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=120,
        )
        return done.returncode, done.stdout

    def called(self, name: str) -> list[str]:
        """Return the arguments of each call of a program."""
        lines = self.calls.read_text().splitlines() if self.calls.exists() else []
        return [line.removeprefix(f"{name} ") for line in lines if line.startswith(f"{name} ")]

    def pip_works(self) -> bool:
        """Return whether the virtual environment has a working pip."""
        pip = [str(self.tree / ".venv" / "bin" / "python"), "-m", "pip", "--version"]
        return subprocess.run(pip, capture_output=True, check=False).returncode == 0


def poor_machine(folder: Path) -> Machine:
    """Return a machine without docker-registry, apt-get and sudo, whose user is not root. The checkout does not exist yet."""
    programs = folder / "bin"
    programs.mkdir()
    made = Machine(folder / "a tree", programs, folder / "calls")
    for name in COREUTILS:
        found = shutil.which(name)
        if found is None:
            made.has(name, "exit 0")
        else:
            (programs / name).symlink_to(found)
    # This is not the Python of the tests' own environment, because a user's machine has no such environment.
    made.environment["PYTHON"] = os.path.realpath(sys.executable)
    made.has("id", "echo 1000")
    return made


@pytest.fixture(scope="module")
def done_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Machine, int, str]:
    """Run set-up once on a machine with a new checkout. Return the machine, the exit code and the output."""
    machine = poor_machine(tmp_path_factory.mktemp("done"))
    tree = machine.tree
    (tree / "deploy").mkdir(parents=True)
    shutil.copy(ROOT / "deploy" / "setup.sh", tree / "deploy")
    (tree / "deploy" / "toolchain.py").write_text('print("tools are seen to")\n')
    (tree / "constraints.txt").write_text("")
    (tree / "pyproject.toml").write_text(PROJECT)
    (tree / "backend.py").write_text(BACKEND)
    return machine, *machine.setup()


@pytest.fixture
def machine(tmp_path: Path, done_once: tuple[Machine, int, str]) -> Machine:
    """Return a new machine with a copy of the checkout of ``done_once``, in which set-up has run."""
    made = poor_machine(tmp_path)
    shutil.copytree(done_once[0].tree, made.tree, symlinks=True)
    return made


@pytest.mark.slow
def test_set_up_without_apt_reports_missing_tools_and_continues(done_once: tuple[Machine, int, str]) -> None:
    machine, code, said = done_once
    assert code == 0, said
    assert "setup: making .venv\n" in said
    assert "not installed: docker-registry;" in said
    assert "as root: apt-get update && apt-get install --no-install-recommends docker-registry\n" in said
    assert "tools are seen to" in said
    assert machine.pip_works()


@pytest.mark.slow
def test_an_existing_environment_is_retained(machine: Machine) -> None:
    machine.has("docker-registry", "exit 0")
    kept = machine.tree / ".venv" / "kept"
    kept.write_text("")
    assert machine.setup() == (0, "tools are seen to\nsetup: ready\n")
    assert kept.exists()


def test_set_up_never_prompts_for_a_sudo_password(machine: Machine) -> None:
    machine.has("apt-get", "exit 0")
    machine.has("sudo", "exit 1")
    code, said = machine.setup()
    assert code == 0, said
    assert machine.called("sudo") == ["-n true"]
    assert machine.called("apt-get") == []
    assert "not installed: docker-registry;" in said


@pytest.mark.parametrize("user", ["root", "sudo"])
def test_missing_packages_are_installed_as_root(machine: Machine, user: str) -> None:
    registry = machine.programs / "docker-registry"
    machine.has("apt-get", f'[ "$2" = update ] || {{ : >"{registry}"; chmod +x "{registry}"; }}')
    machine.has("id", f"echo {0 if user == 'root' else 1000}")
    machine.has("sudo", 'shift; exec "$@"')
    code, said = machine.setup()
    assert code == 0, said
    assert machine.called("apt-get") == ["-qq update", "-qq install -y --no-install-recommends docker-registry"]
    assert len(machine.called("sudo")) == (0 if user == "root" else 3)
    assert "warning" not in said


def test_set_up_continues_if_apt_fails(machine: Machine) -> None:
    machine.has("apt-get", "exit 100")
    machine.has("id", "echo 0")
    (machine.programs / "openssl").unlink()
    code, said = machine.setup()
    assert code == 0, said
    assert [call.rpartition(" ")[2] for call in machine.called("apt-get")] == ["update", "docker-registry", "openssl"]
    assert "not installed: docker-registry openssl;" in said
    assert machine.pip_works()


def test_a_python_without_venv_is_an_error_with_a_remedy(machine: Machine) -> None:
    real = machine.environment["PYTHON"]
    machine.has("python", f'case "$*" in *ensurepip*) exit 1 ;; esac; exec "{real}" "$@"')
    machine.environment["PYTHON"] = "python"
    code, said = machine.setup()
    assert code == 1
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    assert f"apt-get install --no-install-recommends {package} docker-registry" in said


def test_an_old_or_missing_python_is_an_error(machine: Machine) -> None:
    machine.has("python", 'case "$1" in --version) echo Python 3.9.1 ;; *) exit 1 ;; esac')
    machine.environment["PYTHON"] = "python"
    assert machine.setup() == (
        1,
        "setup: error: Python 3.9.1 is too old; Python 3.11 or newer is needed (PYTHON=/path/to/python chooses one)\n",
    )
    machine.environment["PYTHON"] = "nowhere/python"
    code, said = machine.setup()
    assert (code, "no nowhere/python" in said) == (1, True)


@pytest.mark.slow
def test_an_environment_without_pip_is_recreated(machine: Machine) -> None:
    # Ctrl-C after the link to Python was made, but before ensurepip ran, leaves this state.
    shutil.rmtree(machine.tree / ".venv")
    subprocess.run([machine.environment["PYTHON"], "-m", "venv", "--without-pip", machine.tree / ".venv"], check=True)
    assert not machine.pip_works()
    code, said = machine.setup()
    assert code == 0, said
    assert machine.pip_works()


@pytest.mark.slow
def test_an_environment_without_its_python_is_recreated(machine: Machine) -> None:
    python = machine.tree / ".venv" / "bin" / "python"
    for name in (python, python.with_name("python3"), python.with_name(Path(os.path.realpath(sys.executable)).name)):
        name.unlink(missing_ok=True)
        name.symlink_to("/nowhere/python")
    code, said = machine.setup()
    assert code == 0, said
    assert machine.pip_works()


@pytest.mark.slow
def test_a_failed_install_is_repeated(machine: Machine) -> None:
    (machine.tree / ".venv" / ".set-up").unlink()
    (machine.tree / "backend.py").rename(machine.tree / "lost.py")
    code, said = machine.setup()
    assert code == 1
    assert "pip could not install the packages of constraints.txt" in said
    (machine.tree / "lost.py").rename(machine.tree / "backend.py")
    code, said = machine.setup()
    assert code == 0, said
