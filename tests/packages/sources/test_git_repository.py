"""Git repositories as sources of packages, read with the real git from a folder and over HTTP."""

import getpass
from dataclasses import replace
from pathlib import Path

import pytest

from tests.packages.support.charts import manifest
from tests.packages.support.git_server import commit, git, make_repository, serving_git
from tests.packages.support.ssh_server import fake_ssh, make_key, serving_ssh
from tests.registry_server import make_certificate
from wharfinger.packages.errors import AddressError, ArtifactError, ArtifactNotFoundError, RegistryError
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.packages.registry.pusher import load_package
from wharfinger.packages.sources.git_repository import (
    MAX_KEPT,
    GitPacker,
    GitRepositories,
    GitSource,
    SshKey,
    read_git_url,
)
from wharfinger.packages.sources.source import Network, open_source, source_host, source_text
from wharfinger.packages.sources.tag_pattern import TagPattern

CHART = {"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "templates/a.yaml": manifest("a")}
LOGIN = Credentials("porter", "hush")


def below(folder: str, files: dict[str, str]) -> dict[str, str]:
    return {f"{folder}/{name}": text for name, text in files.items()}


async def test_a_tagged_folder_has_the_digest_of_a_local_folder(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "packages")
    first = commit(folder, below("web", CHART), "v1.0.0")
    commit(folder, {"web/templates/a.yaml": manifest("b")}, "v1.1.0", "other", annotated=True)
    with serving_git(tmp_path) as server:
        source = GitSource(f"{server.url}/packages", tags=TagPattern("v{version}"))
        async with open_source(source, "web") as (registry, path):
            assert await registry.tags(path) == ("1.0.0", "1.1.0")
            found = await registry.resolve(path, "1.1.0")
            assert found == (await load_package(folder / "web", "web")).manifest.descriptor
            by_commit = await registry.resolve(path, first)
            assert by_commit == await registry.resolve(path, "1.0.0") != found
            with pytest.raises(
                ArtifactNotFoundError, match=r"has no tag 'v\{version\}' for version 2.0.0 of web; it has: 1.0.0"
            ):
                await registry.resolve(path, "2.0.0")
        async with open_source(source, "dns") as (registry, path):
            with pytest.raises(ArtifactNotFoundError, match=r"v1.1.0 has no folder 'dns'"):
                await registry.resolve(path, "1.1.0")


async def test_a_repository_of_one_package_has_no_other(tmp_path: Path) -> None:
    folder = make_repository(tmp_path)
    commit(folder, below("deploy", {"a.yaml": manifest("a")}), "1.0.0")
    source = GitSource(f"file://{folder}", "deploy", "web")
    async with open_source(source, "web") as (registry, path):
        assert (await registry.resolve(path, "1.0.0")).size
    async with open_source(source, "dns") as (registry, path):
        for request in (registry.resolve(path, "1.0.0"), registry.tags(path)):
            with pytest.raises(ArtifactNotFoundError, match=r"has only the package web, not dns"):
                await request


async def test_only_a_moved_tag_is_fetched_again(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "p")
    commit(folder, below("web", {"a.yaml": manifest("a")}), "1.0.0")
    with serving_git(tmp_path) as server:
        repositories, source = GitRepositories(), GitSource(f"{server.url}/p")
        packer = GitPacker(repositories, source)
        first = await packer.pack("web", "1.0.0")
        asked = len(server.requests)
        assert await packer.pack("web", "1.0.0") is first
        assert len(server.requests) == asked
        commit(folder, below("web", {"a.yaml": manifest("b")}), "1.0.0")
        moved = await GitPacker(GitRepositories(), source).pack("web", "1.0.0")
        assert moved.manifest.descriptor != first.manifest.descriptor


async def test_a_package_with_a_version_other_than_its_tag_is_refused(tmp_path: Path) -> None:
    folder = make_repository(tmp_path)
    commit(folder, below("web", {"package.yaml": "type: Application\nversion: 1.0.0\n"}), "2.0.0")
    with pytest.raises(ArtifactError, match=r": 2.0.0: web: package.yaml: version: 1.0.0 was published as 2.0.0"):
        await GitPacker(GitRepositories(), GitSource(str(folder))).pack("web", "2.0.0")


async def test_a_link_out_of_the_package_is_refused(tmp_path: Path) -> None:
    folder = make_repository(tmp_path)
    (folder / "web").mkdir()
    (folder / "web/a.yaml").symlink_to("../../../../etc/passwd")
    commit(folder, {"web/b.yaml": manifest("b")}, "1.0.0")
    with pytest.raises(ArtifactError, match=r"symbolic link out of the tree"):
        await GitPacker(GitRepositories(), GitSource(str(folder))).pack("web", "1.0.0")


async def test_a_login_is_used_and_never_printed(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "p")
    commit(folder, below("web", {"a.yaml": manifest("a")}), "1.0.0")
    with serving_git(tmp_path, login=LOGIN.basic()) as server:
        source = GitSource(f"{server.url}/p", credentials=LOGIN)
        await GitPacker(GitRepositories(), source).check()
        wrong = GitPacker(GitRepositories(), replace(source, credentials=Credentials("porter", "wr0ng")))
        with pytest.raises(RegistryError) as caught:
            await wrong.check()
        assert "wr0ng" not in str(caught.value)
        assert "hush" not in repr(source)


async def test_only_the_configured_ssh_key_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(make_repository(tmp_path / "git"), below("web", {"a.yaml": manifest("a")}), "1.0.0")
    ssh = fake_ssh(tmp_path / "bin")
    monkeypatch.setenv("PATH", ssh.path)
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    source = GitSource(f"ssh://git@git.example{tmp_path}/git", ssh=SshKey("PRIVATE", "git.example ssh-ed25519 AAAA\n"))
    package = await GitPacker(GitRepositories(), source).pack("web", "1.0.0")
    assert package.version == "1.0.0"
    for noted in ssh.noted():
        assert noted["files"] == {
            "IdentityFile": ["0o600", "PRIVATE\n"],
            "UserKnownHostsFile": ["0o600", "git.example ssh-ed25519 AAAA\n"],
        }
        assert noted["agent"] == ""
        options = noted["options"]
        assert isinstance(options, dict)
        assert {name: options[name] for name in ("BatchMode", "StrictHostKeyChecking", "IdentityAgent")} == {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "yes",
            "IdentityAgent": "none",
        }
        assert not Path(str(options["IdentityFile"]).strip('"')).exists()  # The file with the key was deleted.
        assert str(noted["arguments"]).startswith("['-F', '/dev/null', ")
    assert len(ssh.noted()) == 2
    await GitPacker(GitRepositories(), replace(source, ssh=None)).check()
    assert ssh.noted()[-1]["files"] == {}  # No file was given to ssh, so it uses the files of the daemon's user.
    assert ssh.noted()[-1]["agent"] == "/run/agent"


@pytest.mark.slow
async def test_a_real_ssh_server_accepts_the_key(tmp_path: Path) -> None:
    """A wrong key, or a server whose key is not the known one, is refused with a one-line error."""
    commit(make_repository(tmp_path / "git"), below("web", {"a.yaml": manifest("a")}), "1.0.0")
    with serving_ssh(tmp_path / "ssh") as server:
        source = GitSource(f"ssh://{getpass.getuser()}@{server.host}{tmp_path}/git", ssh=server.key)
        assert (await GitPacker(GitRepositories(), source).pack("web", "1.0.0")).version == "1.0.0"
        other, other_public = make_key(tmp_path, "other")
        refused = replace(source, ssh=replace(server.key, private=other))
        with pytest.raises(RegistryError, match="Permission denied") as caught:
            await GitPacker(GitRepositories(), refused).check()
        assert not caught.value.transient
        host = f"[{server.host.replace(':', ']:')} {other_public}"
        with pytest.raises(
            RegistryError, match=r"git ls-remote: the server has the key SHA256:.*, which is not one of its known"
        ):
            await GitPacker(GitRepositories(), replace(source, ssh=replace(server.key, known_hosts=host))).check()


async def test_a_configured_certificate_authority_is_accepted(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path / "tls")
    source = GitSource("https://127.0.0.1:1/p", ca=certificate.file.read_text())
    with pytest.raises(RegistryError, match=r"git ls-remote: ") as caught:
        await GitPacker(GitRepositories(), source).check()
    assert caught.value.transient


async def test_the_size_of_cached_packages_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wharfinger.packages.sources.git_repository.MAX_KEPT", 1)
    folder = make_repository(tmp_path)
    commit(folder, below("web", {"a.yaml": manifest("a")}), "1.0.0")
    packer = GitPacker(GitRepositories(), GitSource(str(folder)))
    first = await packer.pack("web", "1.0.0")
    assert (await packer.pack("web", "1.0.0")) is not first
    assert MAX_KEPT > 1
    assert git(folder, "status", "--porcelain") == ""


def test_git_addresses_are_parsed() -> None:
    assert str(read_git_url("https://Git.example:8443/a/b")) == "git.example:8443"
    assert str(read_git_url("ssh://git@git.example/a")) == "git.example"
    assert (read_git_url("file:///srv/a"), read_git_url("/srv/a")) == (None, None)
    for wrong in ("git.example/a", "ext::sh", "https://", "file://host/a", "git@git.example:a", "https://a b", "--x"):
        with pytest.raises(AddressError):
            read_git_url(wrong)
    source = GitSource("https://git.example/a", "deploy")
    assert (source_host(source), source_text(source)) == ("git.example", "git:https://git.example/a//deploy@{version}")
    assert Network().git is not Network().git
