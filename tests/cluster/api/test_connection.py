"""Connections that are read from real kubeconfig files, a real exec plugin and a service account folder."""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from wharfinger.cluster.api.connection import (
    Connection,
    ConnectionConfigError,
    KubeconfigAuthorization,
    StaticAuthorization,
    TokenFileAuthorization,
    bearer,
    load_connection,
    load_service_account,
    without_userinfo,
)
from wharfinger.formats.json.value import JsonObject

SECRET = "s3cr3t-t0ken"


def write_kubeconfig(folder: Path, user: JsonObject, cluster: JsonObject | None = None, namespace: str = "") -> Path:
    """Write a kubeconfig with the contexts ``one`` (current) and ``two`` (another server, without credentials)."""
    context: JsonObject = {"cluster": "one", "user": "one"}
    if namespace:
        context["namespace"] = namespace
    document: JsonObject = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "clusters": [
            {"name": "one", "cluster": {"server": "https://one.example:6443"} if cluster is None else cluster},
            {"name": "two", "cluster": {"server": "http://127.0.0.1:8001"}},
        ],
        "users": [{"name": "one", "user": user}],
        "contexts": [
            {"name": "one", "context": context},
            {"name": "two", "context": {"cluster": "two", "user": "none"}},
        ],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(document))
    return path


def write_plugin(folder: Path, body: str) -> Path:
    path = folder / "plugin.py"
    path.write_text(f"#!{sys.executable}\n{body}\n")
    path.chmod(0o755)
    return path


def test_token_namespace_and_server_are_read(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path, {"token": SECRET}, namespace="prod")
    connection = load_connection(path)
    assert connection.server == "https://one.example:6443"
    assert connection.namespace == "prod"
    assert connection.verify_tls
    assert connection.authorization.header(renew=False) == f"Bearer {SECRET}"
    assert SECRET not in repr(connection)
    assert SECRET not in repr(connection.authorization)


def test_a_named_context_and_the_default_namespace_are_read(tmp_path: Path) -> None:
    connection = load_connection(write_kubeconfig(tmp_path, {"token": SECRET}), "two")
    assert (connection.server, connection.namespace) == ("http://127.0.0.1:8001", "default")
    assert connection.authorization.header(renew=True) == ""


def test_basic_auth_is_encoded(tmp_path: Path) -> None:
    connection = load_connection(write_kubeconfig(tmp_path, {"username": "ann", "password": "pw"}))
    scheme, _, value = connection.authorization.header(renew=False).partition(" ")
    assert (scheme.lower(), base64.b64decode(value)) == ("basic", b"ann:pw")


def test_certificates_server_name_and_proxy_are_read(tmp_path: Path) -> None:
    ca, cert, key = tmp_path / "ca.crt", tmp_path / "client.crt", tmp_path / "client.key"
    for path in (ca, cert, key):
        path.write_text("PEM")
    cluster: JsonObject = {
        "server": "https://one.example",
        "certificate-authority": "ca.crt",
        "tls-server-name": "kubernetes",
        "proxy-url": "http://user:pw@proxy.example:3128",
    }
    connection = load_connection(
        write_kubeconfig(tmp_path, {"client-certificate": str(cert), "client-key": str(key)}, cluster)
    )
    assert connection.ca_file is not None
    assert connection.ca_file.resolve() == ca.resolve()
    assert (connection.client_certificate, connection.client_key) == (cert, key)
    assert connection.tls_server_name == "kubernetes"
    assert connection.proxy == "http://user:pw@proxy.example:3128"
    assert "pw" not in repr(connection)


@pytest.mark.parametrize(
    ("named", "no_proxy", "expected"),
    [
        ("", "", "http://proxy.example:3128"),
        ("", "two.example,.example", ""),
        ("", "10.0.0.0/8", "http://proxy.example:3128"),
        ("http://other.example:1", "", "http://other.example:1"),
        ("http://other.example:1", "*", "http://other.example:1"),
    ],
)
def test_the_proxy_matches_kubectl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, no_proxy: str, expected: str
) -> None:
    for name in ("https_proxy", "HTTP_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    cluster: JsonObject = {"server": "https://one.example:6443", **({"proxy-url": named} if named else {})}
    assert load_connection(write_kubeconfig(tmp_path, {"token": "t"}, cluster)).proxy == expected


def test_a_server_on_this_machine_needs_no_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    cluster: JsonObject = {"server": "https://127.0.0.1:6443"}
    assert load_connection(write_kubeconfig(tmp_path, {"token": "t"}, cluster)).proxy == ""
    monkeypatch.setenv("HTTPS_PROXY", "gopher://ann:s3cret@proxy.example")
    with pytest.raises(ConnectionConfigError, match="HTTPS_PROXY: expected the address of an HTTP proxy") as caught:
        load_connection(write_kubeconfig(tmp_path, {"token": "t"}, cluster))
    assert "s3cret" not in str(caught.value)


def test_a_pod_uses_the_proxy_of_its_environment_too(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one")
    (tmp_path / "ca.crt").write_text("PEM")
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    proxied = {**environ, "HTTPS_PROXY": "proxy.example:3128"}
    assert load_service_account(tmp_path, environ).proxy == ""
    assert load_service_account(tmp_path, proxied).proxy == "http://proxy.example:3128"
    assert load_service_account(tmp_path, {**proxied, "NO_PROXY": "10.0.0.0/8"}).proxy == ""


def test_embedded_ca_becomes_a_file(tmp_path: Path) -> None:
    cluster: JsonObject = {
        "server": "https://one.example",
        "certificate-authority-data": base64.b64encode(b"the CA").decode(),
    }
    connection = load_connection(write_kubeconfig(tmp_path, {"token": "t"}, cluster))
    assert connection.ca_file is not None
    assert connection.ca_file.read_bytes() == b"the CA"


def test_tls_verification_is_off_only_if_configured(tmp_path: Path) -> None:
    cluster: JsonObject = {"server": "https://one.example", "insecure-skip-tls-verify": True}
    assert not load_connection(write_kubeconfig(tmp_path, {"token": "t"}, cluster)).verify_tls


def test_impersonation_is_sent(tmp_path: Path) -> None:
    user: JsonObject = {
        "token": "t",
        "as": "ann",
        "as-uid": "7",
        "as-groups": ["a", "b"],
        "as-user-extra": {"scopes": ["view"]},
    }
    assert load_connection(write_kubeconfig(tmp_path, user)).headers == (
        ("Impersonate-User", "ann"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-scopes", "view"),
    )


def test_token_file_is_read_each_time(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first\n")
    connection = load_connection(write_kubeconfig(tmp_path, {"tokenFile": "token"}))
    assert isinstance(connection.authorization, TokenFileAuthorization)
    assert connection.authorization.header(renew=False) == "Bearer first"
    (tmp_path / "token").write_text("second\n")
    assert connection.authorization.header(renew=False) == "Bearer second"
    (tmp_path / "token").unlink()
    with pytest.raises(ConnectionConfigError, match=r"token: expected a bearer token"):
        connection.authorization.header(renew=False)


def test_exec_plugin_is_run_again_on_renewal(tmp_path: Path) -> None:
    plugin = write_plugin(
        tmp_path,
        "import json, pathlib\n"
        "count = pathlib.Path(__file__).with_name('count')\n"
        "runs = int(count.read_text()) + 1 if count.exists() else 1\n"
        "count.write_text(str(runs))\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'ExecCredential',"
        " 'status': {'token': f'token-{runs}'}}))",
    )
    user: JsonObject = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": str(plugin),
            "args": [],
            "interactiveMode": "Never",
        }
    }
    connection = load_connection(write_kubeconfig(tmp_path, user))
    assert isinstance(connection.authorization, KubeconfigAuthorization)
    assert connection.authorization.header(renew=False) == "Bearer token-1"
    assert connection.authorization.header(renew=True) == "Bearer token-2"
    assert connection.authorization.header(renew=False) == "Bearer token-2"
    assert "token-" not in repr(connection.authorization)


def test_expired_credentials_of_a_plugin_are_renewed(tmp_path: Path) -> None:
    plugin = write_plugin(
        tmp_path,
        "import json, pathlib\n"
        "count = pathlib.Path(__file__).with_name('count')\n"
        "runs = int(count.read_text()) + 1 if count.exists() else 1\n"
        "count.write_text(str(runs))\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'ExecCredential',"
        " 'status': {'token': f'token-{runs}', 'expirationTimestamp': '2001-01-01T00:00:00Z'}}))",
    )
    user: JsonObject = {
        "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "interactiveMode": "Never"}
    }
    authorization = load_connection(write_kubeconfig(tmp_path, user)).authorization
    assert authorization.header(renew=False) != authorization.header(renew=False)


def test_a_failing_plugin_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    plugin = write_plugin(tmp_path, "import sys; sys.exit('log in first')")
    user: JsonObject = {
        "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "interactiveMode": "Never"}
    }
    with pytest.raises(ConnectionConfigError, match=r"exec plugin .* gave no credentials; run it by hand") as caught:
        load_connection(write_kubeconfig(tmp_path, user))
    assert not caught.value.transient


def test_a_folder_in_place_of_a_kubeconfig_is_reported_as_such(tmp_path: Path) -> None:
    with pytest.raises(ConnectionConfigError, match="it is a folder; name a file with --kubeconfig"):
        load_connection(tmp_path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "Invalid kube-config. the file is empty; correct it"),
        ("{", "not YAML: line 1, column 2: .*; correct it or choose another kubeconfig"),
        ("a: 1\nb: [1, 2\n", "not YAML: line 3, column 1: expected ',' or ']'"),
        ("[]", "kubeconfig"),
        ("a: b", "kubeconfig"),
        ("clusters: 5", "kubeconfig"),
        ("current-context: x\ncontexts: []", "x"),
        ("current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\nclusters: []", "c"),
        (
            "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\nclusters: [{name: c, cluster: {}}]",
            "no server",
        ),
    ],
)
def test_damaged_kubeconfigs_are_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(ConnectionConfigError, match=says):
        load_connection(path)


def test_an_unknown_context_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConnectionConfigError, match="three"):
        load_connection(write_kubeconfig(tmp_path, {"token": SECRET}), "three")


def test_a_missing_kubeconfig_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConnectionConfigError, match=r"no such file; give one with --kubeconfig"):
        load_connection(tmp_path / "none")


def test_kubeconfig_is_found_by_environment_and_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_kubeconfig(tmp_path, {"token": SECRET})
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join([str(tmp_path / "none"), str(path)]))
    assert load_connection(None).server == "https://one.example:6443"
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(ConnectionConfigError, match="no such file"):
        load_connection(None)
    monkeypatch.delenv("KUBECONFIG")
    with pytest.raises(ConnectionConfigError, match="no cluster is configured"):
        load_connection(None)
    (tmp_path / "home/.kube").mkdir(parents=True)
    path.rename(tmp_path / "home/.kube/config")
    assert load_connection(None).server == "https://one.example:6443"


def test_the_service_account_is_used_in_a_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("one")
    (tmp_path / "ca.crt").write_text("PEM")
    (tmp_path / "namespace").write_text("prod")
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    connection = load_service_account(tmp_path, environ)
    assert connection.server == "https://[fd00::1]:443"
    assert (connection.namespace, connection.ca_file) == ("prod", tmp_path / "ca.crt")
    assert connection.authorization.header(renew=False) == "Bearer one"
    (tmp_path / "token").write_text("two")
    assert connection.authorization.header(renew=False) == "Bearer two"
    with pytest.raises(ConnectionConfigError, match="service account"):
        load_service_account(tmp_path / "none", environ)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(ConnectionConfigError, match="check that the pod mounts"):
        load_connection(None)


def test_importing_this_module_does_not_import_kubernetes() -> None:
    code = "import sys, wharfinger.cluster.api.connection; print('kubernetes' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_bearer_and_static_authorization_headers() -> None:
    assert bearer("").header(renew=False) == ""
    assert StaticAuthorization("Basic x").header(renew=True) == "Basic x"
    assert Connection("http://x").authorization.header(renew=False) == ""


def test_credentials_in_the_url_are_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "clusters: [{name: c, cluster: {server: 'http://porter:s%2Fcret@127.0.0.1:6443/base'}}]\n"
        "contexts: [{name: c, context: {cluster: c, user: ''}}]\nusers: []\n"
    )
    connection = load_connection(path)
    assert connection.server == "http://127.0.0.1:6443/base"
    assert connection.authorization.header(renew=False) == "Basic " + base64.b64encode(b"porter:s/cret").decode()
    assert "cret" not in repr(connection)


def test_a_url_without_credentials_is_unchanged() -> None:
    assert without_userinfo("https://[::1]:6443/a?b#c") == ("https://[::1]:6443/a?b#c", "")
