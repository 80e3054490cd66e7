"""The commands ``wharfinger package …`` as a user runs them, with a real registry."""

import argparse
import base64
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
import trio

from tests.packages.settings.test_check import FILES
from tests.packages.support.charts import WEB_SERVICE, WEB_VERSION, chart, write
from tests.packages.support.faulty_registry import Reply, open_faulty_registry, sample
from tests.packages.support.real_jq import RealJq
from tests.packages.support.signing import KEY, POLICY, private_pem
from tests.programs import ROOT
from tests.registry_server import PASSWORD, USER, make_certificate, open_registry_server
from wharfinger.__main__ import main
from wharfinger.hooks.author.local_package import check_hook_files
from wharfinger.packages.commands import add_package
from wharfinger.packages.digest import digest_of
from wharfinger.packages.registry.address import RegistryAddress
from wharfinger.packages.registry.manifest import HELM_CONFIG, MAX_MANIFEST, OCI_MANIFEST, write_manifest
from wharfinger.packages.registry.registry import Descriptor
from wharfinger.packages.sources.source import LayoutSource, open_source


@asynccontextmanager
async def open_jq() -> AsyncIterator[RealJq]:
    yield RealJq(dying={".dying"}, endless={"def f: f; f"})


def run(*arguments: str) -> int:
    """Run a command in this thread, and return its exit code."""
    parser = argparse.ArgumentParser(prog="wharfinger package")
    parser.set_defaults(open_jq=open_jq, check_hooks=check_hook_files)
    add_package(parser)
    args = parser.parse_args(arguments)
    code: int = args.handler(args)
    return code


async def run_beside(*arguments: str) -> int:
    return await trio.to_thread.run_sync(lambda: run(*arguments))


@contextmanager
def typed(text: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", io.StringIO(text))
        yield


async def test_a_pushed_chart_can_be_inspected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with open_registry_server(tmp_path) as address:
        assert await run_beside("push", str(WEB_SERVICE), f"{address}/charts/web-service") == 0
        said = capsys.readouterr().out
        match = re.fullmatch(
            rf"pushed {re.escape(str(address))}/charts/web-service:{re.escape(WEB_VERSION)} (sha256:[0-9a-f]{{64}})\n",
            said,
        )
        assert match is not None
        for reference in (
            f"oci://{address}/charts/web-service:{WEB_VERSION}",
            f"{address}/charts/web-service@{match[1]}",
        ):
            assert await run_beside("inspect", reference) == 0
            said = capsys.readouterr().out
            assert f"digest       {match[1]}" in said
            assert re.search(r"^name +web-service$", said, re.MULTILINE)
            assert re.search(rf"^version +{re.escape(WEB_VERSION)}$", said, re.MULTILINE)
            assert re.search(
                r"^layer +sha256:[0-9a-f]{64}  \d+ bytes  application/vnd\.cncf\.helm\.chart", said, re.MULTILINE
            )


async def test_push_can_sign_the_package(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package that was pushed with a key is trusted with the public key, and openssl verifies the signature."""
    (tmp_path / "key.pem").write_bytes(private_pem(KEY, "geheim"))
    reference = f"oci-layout:{tmp_path}/web-service"
    push = ("push", str(WEB_SERVICE), reference, "--sign", str(tmp_path / "key.pem"))
    assert await run_beside(*push) == 1
    assert "its password in WHARFINGER_KEY_PASSWORD" in capsys.readouterr().err
    assert not (tmp_path / "web-service").exists()
    monkeypatch.setenv("WHARFINGER_KEY_PASSWORD", "geheim")
    assert await run_beside(*push) == 0
    said = capsys.readouterr().out
    assert re.search(r"\nsigned with .*/key\.pem \(sha256:[0-9a-f]{16}\) sha256:[0-9a-f]{64}\n\Z", said)
    async with open_source(LayoutSource(tmp_path, POLICY), "web-service") as (registry, path):
        assert (await registry.resolve(path, WEB_VERSION)).digest.text in said


async def test_push_accepts_another_tag_and_a_password(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = chart(tmp_path / "web", version="1.0.0+a")
    async with open_registry_server(tmp_path, with_password=True) as address:
        reference = f"{address}/web"
        with typed(PASSWORD + "\n", monkeypatch):
            assert await run_beside("push", str(folder), reference, "--username", USER, "--password-stdin") == 0
        assert f"pushed {reference}:1.0.0_a sha256:" in capsys.readouterr().out
        with typed(PASSWORD, monkeypatch):
            login = ("--username", USER, "--password-stdin")
            assert await run_beside("push", str(folder), f"{reference}:latest", *login, "--force") == 0
        assert f"pushed {reference}:latest sha256:" in capsys.readouterr().out
        with typed("wr0ng", monkeypatch):
            assert await run_beside("inspect", f"{reference}:latest", "--username", USER, "--password-stdin") == 1
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert "check user name and password" in said
        assert "wr0ng" not in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["push", str(WEB_SERVICE), "web"], "no repository"),
        (["push", str(WEB_SERVICE), "a.example/Web"], "lower-case"),
        (["push", str(WEB_SERVICE), f"a.example/web@sha256:{'a' * 64}"], "expected a tag, found a digest"),
        (["push", "/nonexistent", "a.example/web"], "give a package's folder, or a chart's .tgz"),
        (["inspect", "127.0.0.1:1/web"], "give a tag or a digest, such as 127.0.0.1:1/web:1.0.0"),
        (
            ["inspect", "127.0.0.1:1/web:1"],
            "check the address and that the registry runs; the problem may be temporary",
        ),
        (["inspect", "a.example/web:1", "--username", "x"], "--username and --password-stdin together"),
        (["inspect", "a.example/web:1", "--password-stdin"], "--username and --password-stdin together"),
        (["inspect", "https://127.0.0.1:1/web:1", "--ca", "/nonexistent.pem"], "/nonexistent.pem: cannot be read"),
        (["inspect", "https://127.0.0.1:1/web:1", "--ca-file", "/dev/null"], "not a file of PEM certificates"),
        (["inspect", "https://127.0.0.1:1/web:1", "--ca", "/dev/zero"], "/dev/zero: more than"),
        (["inspect", "127.0.0.1:1/web:1", "--docker-config", "/nonexistent"], "/nonexistent: cannot be read"),
        (["inspect", "127.0.0.1:1/web:1", "--docker-config", "/dev/null"], "/dev/null: docker config: document"),
        (
            ["push", str(WEB_SERVICE), "127.0.0.1:1/web:9.9.9"],
            f"which is pushed as {WEB_VERSION}; give that tag or no tag",
        ),
        (["push", str(WEB_SERVICE / "Chart.yaml"), "127.0.0.1:1/web"], "Chart.yaml: not an archive"),
        (["push", str(WEB_SERVICE.parent), "127.0.0.1:1/web"], "make this folder a package of its own"),
        (["inspect", "oci-layout:/nonexistent/web:1"], "there is no /nonexistent/web/index.json"),
        (
            ["inspect", "oci-layout:/nonexistent/web"],
            "give a tag or a digest, such as oci-layout:/nonexistent/web:1.0.0",
        ),
        (["push", str(WEB_SERVICE), "oci-layout:/nonexistent/Web"], "expected oci-layout:FOLDER/PACKAGE[:TAG]"),
        (["push", str(WEB_SERVICE), "oci-layout:"], "expected oci-layout:FOLDER/PACKAGE[:TAG]"),
        (["push", str(WEB_SERVICE), "oci-layout:a/web:-x"], "expected oci-layout:FOLDER/PACKAGE[:TAG]"),
        (["inspect", "oci-layout:a/web@sha256:1"], "not of the form sha256"),
    ],
)
def test_errors_are_reported_in_one_line(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*arguments) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    assert says in said.err


async def test_a_package_can_be_pushed_to_a_layout_and_inspected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "type: Module\nname: tuner\nversion: 1.0.0\ndescriptions: {en: Tunes}\n"
    folder = write(tmp_path / "tuner", {"package.yaml": said, "hooks/run.sh": "#!/bin/sh\n"})
    target = f"oci-layout:{tmp_path}/shelf/tuner"
    for tag in ("", ":1.0.0"):
        assert await run_beside("push", str(folder), target + tag) == 0
        match = re.fullmatch(rf"pushed {re.escape(target)}:1\.0\.0 (sha256:[0-9a-f]{{64}})\n", capsys.readouterr().out)
        assert match is not None
        for reference in (f"{target}:1.0.0", f"{target}@{match[1]}"):
            assert await run_beside("inspect", reference) == 0
            out = capsys.readouterr().out
            for line in (rf"reference +{re.escape(reference)}", f"digest +{match[1]}", "name +tuner", "version +1.0.0"):
                assert re.search(f"^{line}$", out, re.MULTILINE)
            assert re.search("^kind +Module$", out, re.MULTILINE)
            assert re.search(r"^layer +sha256:.*application/vnd\.oci\.image\.layer\.v1\.tar\+gzip$", out, re.MULTILINE)
    assert await run_beside("push", str(folder), f"{target}:2.0.0") == 1
    assert "tuner has version 1.0.0" in capsys.readouterr().err
    assert await run_beside("push", str(folder), f"{target}:2.0.0", "--force") == 0


async def test_a_layout_can_be_in_the_current_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert await run_beside("push", str(WEB_SERVICE), "oci-layout:web") == 0
    assert f"pushed oci-layout:web:{WEB_VERSION} sha256:" in capsys.readouterr().out
    assert (tmp_path / "web" / "index.json").is_file()


async def test_a_package_without_a_version_needs_a_tag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(tmp_path / "tuner", {"hooks/run.sh": "#!/bin/sh\n"})
    target = f"oci-layout:{tmp_path}/shelf/tuner"
    assert await run_beside("push", str(folder), target) == 1
    assert f"tuner has no version; give a tag, such as {target}:1.0.0" in capsys.readouterr().err
    assert await run_beside("push", str(folder), f"{target}:1.0.0") == 0


async def test_logins_are_read_from_the_docker_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = await trio.to_thread.run_sync(make_certificate, tmp_path / "tls")
    async with open_registry_server(tmp_path, with_password=True, certificate=certificate) as address:
        auth = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        home, other = tmp_path / "home", tmp_path / "other.json"
        login = json.dumps({"auths": {str(address): {"auth": auth}}})
        write(home, {".docker/config.json": login})
        other.write_text(login)
        reference = f"https://{address}/web"
        ca = ("--ca", str(certificate.file))
        monkeypatch.delenv("DOCKER_CONFIG", raising=False)
        monkeypatch.setenv("HOME", str(tmp_path))
        assert await run_beside("push", str(WEB_SERVICE), reference, *ca) == 1
        assert "check user name and password" in capsys.readouterr().err
        assert await run_beside("push", str(WEB_SERVICE), reference, *ca, "--docker-config", str(other)) == 0
        monkeypatch.setenv("HOME", str(home))
        assert await run_beside("inspect", f"{reference}:{WEB_VERSION}", *ca) == 0
        monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
        assert await run_beside("inspect", f"{reference}:{WEB_VERSION}", *ca) == 1
        monkeypatch.setenv("DOCKER_CONFIG", str(home / ".docker"))
        assert await run_beside("inspect", f"{reference}:{WEB_VERSION}", *ca) == 0
        capsys.readouterr()
        assert await run_beside("inspect", f"{reference}:{WEB_VERSION}") == 1
        assert (
            "give the authority's certificate (spec.registry.ca in a PackageRepository, --ca on the command line)"
            in capsys.readouterr().err
        )


def test_invalid_usage_exits_with_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["push"], ["inspect"], ["pull", "x"]):
        with pytest.raises(SystemExit) as caught:
            run(*arguments)
        assert caught.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_plain_http_is_an_option() -> None:
    parser = argparse.ArgumentParser()
    add_package(parser)
    assert parser.parse_args(["push", "x", "y", "--plain-http"]).plain_http is True
    assert parser.parse_args(["push", "x", "y"]).plain_http is False


async def inspect_config(config: bytes, media_type: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Inspect an artifact with this config. Return the exit code, stdout and stderr."""
    described = Descriptor(media_type, digest_of(config), len(config))
    data = write_manifest(described, (sample().layer,), {})
    async with open_faulty_registry() as faulty:
        faulty.manifest("1", Reply(headers=(("Content-Type", OCI_MANIFEST),), body=data))
        faulty.manifest(digest_of(data).text, Reply(headers=(("Content-Type", OCI_MANIFEST),), body=data))
        faulty.blob(described, Reply(body=config))
        code = await run_beside("inspect", f"{faulty.address}/charts/web:1")
    said = capsys.readouterr()
    return code, said.out, said.err


async def test_control_characters_of_a_config_are_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    config = json.dumps({"name": "web\x1b[31m\nname  other", "version": ["x"], "appVersion": 1.5}).encode()
    code, out, _ = await inspect_config(config, HELM_CONFIG, capsys)
    assert code == 0
    assert "\x1b" not in out
    assert len(re.findall("^name", out, re.MULTILINE)) == 1
    assert re.search(r"^app version +1\.5$", out, re.MULTILINE)


async def test_artifacts_that_are_not_charts_can_be_inspected(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = await inspect_config(b"{}", "application/vnd.oci.image.config.v1+json", capsys)
    assert code == 0
    assert re.search(r"^type +application/vnd\.oci\.image\.config", out, re.MULTILINE)
    assert "name" not in out


@pytest.mark.parametrize("config", [b"[]", b"{", b" " * (MAX_MANIFEST + 1)])
async def test_an_unreadable_config_is_reported(config: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = await inspect_config(config, HELM_CONFIG, capsys)
    assert (code, out) == (1, "")
    assert err.startswith("error: config sha256:")


def test_an_address_is_printed_as_typed() -> None:
    assert str(RegistryAddress("127.0.0.1", 5000)) == "127.0.0.1:5000"


def test_check_reports_warnings_and_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(tmp_path / "web", FILES)
    assert run("check", str(folder)) == 0
    said = capsys.readouterr().out.splitlines()
    assert said == [
        "warning: openapi/conversions/v2.yaml: no example in testcases.yaml converts to version 2",
        "web (Package, Module): no errors, 1 warning",
    ]
    (folder / "package.yaml").write_text("name: A")
    assert run("check", str(folder)) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "the package: 1 error, no warnings"
    assert run("check", str(folder), "-o", "json") == 1
    assert json.loads(capsys.readouterr().out)["passed"] is False


@pytest.mark.slow
def test_other_characters_are_escaped_for_an_ascii_terminal(tmp_path: Path) -> None:
    schema = "{type: object, x-config-version: 1, properties: {größe✓: {type: wrong}}}"
    folder = write(tmp_path / "web", {"package.yaml": FILES["package.yaml"], "openapi/settings.yaml": schema})
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "wharfinger", "package", "check", str(folder)],
        env=environment,
        capture_output=True,
        check=False,
        cwd=ROOT,
    )
    assert (done.returncode, done.stderr) == (1, b"")
    assert b"gr\\xf6\\xdfe\\u2713" in done.stdout


def test_check_validates_given_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path / "web", FILES)
    settings = tmp_path / "settings.yaml"
    settings.write_text("count: 0")
    assert run("check", str(folder), "--settings", str(settings), "--settings-version", "1") == 1
    assert "error: settings.replicas: " in capsys.readouterr().out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"count: 3")))
    assert run("check", str(folder), "--settings", "-", "--settings-version", "1", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["settingsChecked"] is True


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "cannot be read: No such file or directory"),
        ("[]", "expected an object, found a list"),
        ("a: [", "settings.yaml"),
    ],
)
def test_check_refuses_missing_and_invalid_settings_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, says: str
) -> None:
    if text is not None:
        (tmp_path / "settings.yaml").write_text(text)
    assert run("check", str(tmp_path), "--settings", str(tmp_path / "settings.yaml")) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert says in err


def test_check_reports_a_temporary_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(tmp_path / "web", {**FILES, "openapi/conversions/v2.yaml": "{version: 2, conversions: [.dying]}"})
    assert run("check", str(folder)) == 1
    assert "its worker died; the problem may be temporary, try again" in capsys.readouterr().err


def test_check_prints_its_document_even_for_an_endless_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program that never ends is an error of the package and not a temporary problem, so the document is printed."""
    endless = "{version: 2, conversions: ['def f: f; f']}"
    folder = write(tmp_path / "web", {**FILES, "openapi/conversions/v2.yaml": endless})
    assert run("check", str(folder), "-o", "json") == 1
    out, err = capsys.readouterr()
    assert err == ""
    finding, _ = json.loads(out)["findings"]
    assert finding["message"].startswith("openapi/conversions/v2.yaml: conversions[0]: the program takes too long: ")


@pytest.mark.parametrize("version", ["-1", "x", "1001", "²", "0000001001", "9" * 5000, "0" * 9 + "9" * 5000])
def test_check_refuses_impossible_settings_versions(version: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("check", "a", f"--settings-version={version}")
    said = capsys.readouterr().err
    assert "expected a number from 1 to 1000, found" in said
    assert len(said) < 1000


def test_check_reports_a_missing_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", str(tmp_path / "nowhere")) == 1
    assert "nowhere: no such folder" in capsys.readouterr().err


def test_check_reports_a_file_in_place_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert run("check", str(tmp_path / "file")) == 1
    assert "file: it is a file, not a folder; name the folder with the package's files" in capsys.readouterr().err


def test_check_reports_hooks_that_the_daemon_would_skip(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "web" / "hooks").mkdir(parents=True)
    (tmp_path / "web" / "package.yaml").write_text("name: web\nversion: 1.0.0\n")
    (tmp_path / "web" / "hooks" / "a.sh").write_text("#!/bin/bash\n")
    assert main(["package", "check", str(tmp_path / "web")]) == 0
    assert "hooks/a.sh: no executable permissions, chmod +x is required" in capsys.readouterr().out
    (tmp_path / "web" / "package.yaml").write_text("name: web\nversion: 1.0.0\nbatchHooks: [hooks/a.sh]\n")
    assert main(["package", "check", str(tmp_path / "web")]) == 1
    assert "declared in batchHooks" in capsys.readouterr().out


def test_check_refuses_values_that_contradict_their_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(tmp_path / "web", {**FILES, "values.yaml": "{size: huge}"})
    assert run("check", str(folder)) == 1
    said = capsys.readouterr().out.splitlines()
    assert [line for line in said if line.startswith("error: values.yaml: size: ")]
    assert said[-1] == "web (Package, Module): 1 error, 1 warning"
