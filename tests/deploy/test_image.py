"""The container image. Its instructions are safe, and their scripts build the documented files, with the same bytes each time.

No container engine is needed, because the scripts run in a copy of the files that the Containerfile copies.
"""

import hashlib
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.programs import ROOT
from tests.scale import FULL

IMAGE = ROOT / "deploy" / "image"
STAGES = re.split(r"^(?=FROM )", (IMAGE / "Containerfile").read_text(), flags=re.MULTILINE)[1:]


def instructions(stage: str) -> list[list[str]]:
    """Return the instructions of a stage, each split into words. Continued lines are joined."""
    lines = stage.replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines if line.strip() and not line.startswith("#")]


def copied(stage: str) -> list[str]:
    """Return the files and folders of the checkout that a stage copies."""
    return [
        source
        for words in instructions(stage)
        if words[0] == "COPY" and not words[1].startswith("--from")
        for source in words[1:-1]
    ]


def context(stage: str, into: Path) -> Path:
    """Copy exactly the files that a stage copies, and return the folder."""
    for source in copied(stage):
        target = into / source
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(ROOT / source, target)
    return into


def build(script: str, stage: str, folder: Path) -> Path:
    """Run a stage's script in a clean folder, and return the folder with its output."""
    made = folder / "made"
    done = subprocess.run(
        [context(stage, folder / "source") / "deploy" / "image" / script, made],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
    assert done.returncode == 0, done.stderr
    return made


def digests(folder: Path) -> dict[str, str]:
    """Return the digest of every file below a folder."""
    files = (each for each in folder.rglob("*") if each.is_file() and not each.is_symlink())
    return {str(each.relative_to(folder)): hashlib.sha256(each.read_bytes()).hexdigest() for each in files}


def test_every_copied_file_exists() -> None:
    sources = [source for stage in STAGES for source in copied(stage)]
    assert len(sources) > 5
    assert [source for source in sources if not (ROOT / source).exists()] == []


def test_every_step_is_a_script_of_its_own() -> None:
    run = [words[1] for stage in STAGES for words in instructions(stage) if words[0] == "RUN"]
    assert [Path(each).name for each in run] == ["programs.sh", "python.sh", "debian.sh", "wharfinger"]
    assert all((IMAGE / Path(each).name).stat().st_mode & 0o111 for each in run[:3])


def test_the_image_runs_as_an_unprivileged_user() -> None:
    last = instructions(STAGES[-1])
    assert ["USER", "65532:65532"] in last
    assert last.index(["USER", "65532:65532"]) > max(n for n, words in enumerate(last) if words[0] in {"RUN", "COPY"})


def test_programs_are_compiled_on_the_builders_own_platform() -> None:
    words = [word for line in instructions(STAGES[0]) for word in line]
    assert {"--platform=$BUILDPLATFORM", "TARGETARCH", "GOARCH=$TARGETARCH", "GOOS=$TARGETOS"} <= {*words}


def added() -> set[str]:
    """Return everything that the build of the image adds to its base: copied paths, built programs, Debian packages, folders,
    and the library for hooks.
    """
    found = {"/shell_lib.sh"}
    for words in instructions(STAGES[-1]):
        if words[0] == "COPY" and not words[-1].startswith("/tmp/"):
            found.add(words[-1])
    found.remove("/usr/local/bin/")
    programs = (IMAGE / "programs.sh").read_text()
    found |= {f"/usr/local/bin/{name}" for name in re.findall(r'-o "\$out/([a-z-]+)"', programs)}
    debian = (IMAGE / "debian.sh").read_text()
    (packages,) = re.findall(r"^apt-get .*install .*--no-install-recommends (.+)$", debian, re.MULTILINE)
    found |= {*packages.split(), *re.findall(r"^install -d .* (/\S+)$", debian, re.MULTILINE)}
    return found


def test_the_readme_lists_exactly_the_files_of_the_image() -> None:
    rows = re.findall(r"^\| (`.+?) \| .+? \| (.+?) \|$", (IMAGE / "README.md").read_text(), re.MULTILINE)
    assert all(reason for _, reason in rows)
    listed = {name for names, _ in rows for name in re.findall("`([^`]+)`", names)}
    assert added() - listed == set()
    # The library for hooks has several files, and the list of components is in the folder of the daemon.
    assert listed - added() == {"/frameworks", "/framework", "/opt/wharfinger/sbom.cdx.json"}


@pytest.mark.skipif(not FULL, reason="the full figures: builds twice from scratch")
def test_builds_of_the_programs_are_reproducible(tmp_path: Path) -> None:
    one, two = (build("programs.sh", STAGES[0], tmp_path / name) for name in ("one", "two"))
    assert digests(one) == digests(two)
    assert set(digests(one)) == {"wharfinger-engine", "helm", "kubectl"}
    for command in (("helm", "version", "--short"), ("kubectl", "version", "--client")):
        done = subprocess.run([one / command[0], *command[1:]], capture_output=True, text=True, check=True)
        assert re.search(r"v\d+\.\d+\.\d+", done.stdout)


@pytest.mark.skipif(not FULL, reason="the full figures: installs twice from scratch")
def test_the_daemon_is_installed_without_the_control_plane(tmp_path: Path) -> None:
    one = build("python.sh", STAGES[1], tmp_path)
    first = digests(one)
    shutil.rmtree(one)
    shutil.rmtree(tmp_path / "source")
    assert digests(build("python.sh", STAGES[1], tmp_path)) == first
    said = subprocess.run([one / "bin" / "wharfinger", "run", "--help"], capture_output=True, text=True, check=True)
    assert "--state-dir" in said.stdout
    names = set(first)
    assert "sbom.cdx.json" in names
    assert not [name for name in names if "/google_re2" in name or "/pip/" in name or "/setuptools/" in name]
    assert [name for name in names if name.endswith(".pyc")]
