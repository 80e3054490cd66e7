"""The distributions: sdist and wheel contain every module and data file, and can be installed into an empty environment.

The quick tests build as `make build` does, and check which files are in the distributions. The builds use isolated
environments, because the setuptools that comes with Python is too old for pyproject.toml. The full test installs the sdist and
the wheel into empty environments, and runs the command in the working folder ``/``.
"""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.scale import FULL

ROOT = Path(__file__).resolve().parent.parent
# The path is relative to the root, because pip splits PIP_CONSTRAINT at spaces.
CONSTRAINED = {**os.environ, "PIP_CONSTRAINT": "constraints.txt", "SOURCE_DATE_EPOCH": "315619200"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the sdist, and with the wheel that was built from the sdist."""
    source = tmp_path_factory.mktemp("source")
    files = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    archive = subprocess.run(
        ["tar", "--create", "--null", "--files-from=-", "--ignore-failed-read"],
        cwd=ROOT,
        input=files,
        capture_output=True,
        check=True,
    ).stdout
    subprocess.run(["tar", "--extract"], cwd=source, input=archive, check=True)
    out = tmp_path_factory.mktemp("dist")
    built = subprocess.run(
        [sys.executable, "-m", "build", "--outdir", str(out), str(source)],
        cwd=ROOT,
        env=CONSTRAINED,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout
    return out


def shipped() -> set[str]:
    """Return the files that must be in a distribution, as paths below ``wharfinger/``: modules, ``py.typed``, and data files."""
    package = ROOT / "wharfinger"
    kinds = {".py", ".yaml", ".json", ".xz", ".sh", ".typed", ".html", ".css", ".js", ".svg"}
    return {str(path.relative_to(package)) for path in package.rglob("*") if path.suffix in kinds}


@pytest.mark.slow
def test_the_wheel_contains_every_file_and_no_links(built: Path) -> None:
    wheel = next(built.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        names = {name.removeprefix("wharfinger/") for name in archive.namelist() if name.startswith("wharfinger/")}
    assert shipped() <= names


@pytest.mark.slow
def test_the_wheel_is_reproducible(built: Path, tmp_path: Path) -> None:
    """The wheel is built again in another folder, from the files of the sdist, and must have the same bytes."""
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    again = tmp_path / "again"
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", str(again), str(source)],
        cwd=ROOT,
        env=CONSTRAINED,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert next(again.glob("*.whl")).read_bytes() == next(built.glob("*.whl")).read_bytes()


@pytest.mark.slow
def test_the_sdist_contains_every_file(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.partition("/wharfinger/")[2] for name in archive.getnames() if "/wharfinger/" in name}
        assert not any(member.issym() for member in archive.getmembers())
    assert shipped() <= names


@pytest.mark.skipif(not FULL, reason="the full figures: installs twice from scratch")
@pytest.mark.parametrize("kind", ["*.whl", "*.tar.gz"])
def test_each_distribution_installs_into_an_empty_environment_and_runs(built: Path, kind: str, tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", str(next(built.glob(kind)))],
        cwd=ROOT,
        env=CONSTRAINED,
        capture_output=True,
        check=True,
    )
    done = subprocess.run(
        [python.parent / "wharfinger", "version"], cwd="/", capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("wharfinger ")
    done = subprocess.run(
        [python, "-m", "wharfinger", "run", "--help"], cwd="/", capture_output=True, text=True, check=True
    )
    assert "--kubeconfig" in done.stdout
    code = "import queue, wharfinger.queue.machine; assert hasattr(queue, 'SimpleQueue')"
    subprocess.run([python, "-c", code], cwd="/", check=True)
