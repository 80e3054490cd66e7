"""A session with a real daemon over its real socket: golden transcripts, a terminal, and no secret in any output."""

import json
import re
import socket
import sys
import time
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
import trio
from mcp import Client, StdioServerParameters

from tests.debug.support.documents import documents
from tests.debug.support.golden import check_golden, unchanging, words_of
from tests.debug.support.session import SECRETS, Session, open_session, transcript
from tests.packages.support.charts import chart
from tests.programs import PATIENCE_S
from wharfinger.debug.client.exchange import Question, exchange_blocking, run_without_loop
from wharfinger.debug.server.routes import ROUTES
from wharfinger.formats.terminal_text import is_safe

pytestmark = [pytest.mark.slow, pytest.mark.unmeasured]

COMMANDS = (
    "get packages",
    "get packages default.shop -o name",
    "get apps -o jsonpath={.apps.*.status.state}",
    "get apps -n other",
    "get apps -A -l team=web --no-headers",
    "get apps -l team!=web",
    "get modules",
    "get queues",
    "get hooks -o wide",
    "get watches",
    "get resources",
    "get resources -l app=shop -o name",
    "get resources default.shop -o 'jsonpath={range .resources[*]}{.kind}={.health};{end}'",
    "get versions",
    "get pools",
    "get repositories default -o name",
    "get packages nope",
    "get packages -o jsonpath={.a",
    "wait default.shop --timeout 0s",
    "wait default.shop --for condition=Loaded --timeout 0s",
    "wait default.shop --for condition=Loaded=False --timeout 0s",
    "wait default.nope --timeout 0s",
    "wait default.nope --for deleted",
    "values default.shop",
    "values default.shop --settings -o json",
    "snapshots default.shop -o 'jsonpath={.*.maps[*].filterResult} {.*.logins[*].filterResult}'",
    "snapshots default.shop --hook hooks/none.sh",
    "logs default.nope",
    "diff default.shop",
    "tasks --package default.nope",
    "why default.shop",
)
REQUESTS = (
    "reconcile default.shop",
    "reconcile default.shop --force",
    "reconcile default.shop --reset",
    "reconcile default.nope",
    "retry default.shop",
    "suspend default.shop",
    "suspend default.shop",
    "suspend nope",
    "resume default.shop",
    "resume default.shop",
    "approve default.shop",
)
INSTALLING = (
    "install FOLDER/charts/none",
    "install FOLDER/charts/one --name mine --namespace nowhere",
    "install FOLDER/charts/one --name mine --set text=first",
    "rollback default.mine",
    "install FOLDER/charts/two --name mine --set text=second",
    "rollback default.mine 7",
    "rollback default.nope",
    "rollback default.mine",
)
REMOVING = ("get packages default.mine", "why default.mine", "uninstall mine", "uninstall mine")
PASSING = re.compile(
    r"^! (?:(?:Pending|Updating|Degraded|Removing)\b.*|the release is being uninstalled)\n", re.MULTILINE
)
"""States that a command may or may not see in passing."""
FOLLOWED = ("/api/v1/packages/dump", "/api/v1/queues/dump", "/api/v1/why", "/api/v1/logs", "/api/v1/packages/resources")
EVERYTHING = (
    *COMMANDS,
    *(f"get {what} -o {form}" for what in ("packages", "hooks", "resources", "watches") for form in ("json", "yaml")),
    "get repositories -o wide",
    "get repositories -o json",
    "describe default.shop",
    "describe default.shop -o yaml",
    "describe default.shop -o json",
    "events",
    "events default.shop -o json",
    "logs default.shop",
    "logs default.shop -o json",
    "snapshots default.shop",
    "snapshots default.shop -o json",
    "history default.shop --all -o yaml",
    "dump -o json",
    "dump -o yaml",
    "render default.shop",
    "statistics -o prometheus",
    "tasks",
    "tasks -o json",
    "profile --seconds 2 -o json",
    "memory -o json",
    "diff default.shop -o json",
)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with open_session(tmp_path_factory.mktemp("s")) as opened:
        yield opened


def test_commands_print_the_golden_transcript(session: Session) -> None:
    check_golden("session.txt", transcript(session, COMMANDS))


def test_commands_print_the_golden_documents(session: Session) -> None:
    """The commands print text for users, and JSON and YAML documents for programs."""
    check_golden("documents.txt", documents(session))


def test_a_terminal_and_a_pipe_get_the_same_output(session: Session) -> None:
    for line in COMMANDS:
        done = session.run(*words_of(line))
        if done.returncode == 2:
            continue  # argparse breaks the lines of a usage error differently
        code, received = session.in_terminal(*words_of(line), columns=5000)
        shown, piped = (unchanging(text, session.folder) for text in (received, f"{done.stdout}{done.stderr}"))
        assert (code, shown.splitlines()) == (done.returncode, piped.splitlines()), line


def test_no_secret_is_in_any_output(session: Session) -> None:
    for line in EVERYTHING:
        done = session.run(*words_of(line))
        for secret in SECRETS:
            assert secret not in done.stdout + done.stderr, line
        assert "Traceback" not in done.stderr, line


def test_no_secret_is_in_any_answer_of_the_socket(session: Session) -> None:
    for path, route in ROUTES.items():
        if route.post:
            continue
        place = path.replace("{name}", "default.shop").replace("{format}", ".json")
        query = {"package": "default.shop"} if "package" in route.parameters else {}
        query |= {"seconds": "2"} if "seconds" in route.parameters else {}
        reply = run_without_loop(exchange_blocking(session.socket, Question(place, query, 60.0, streamed=True)))
        assert reply.body is not None, path
        assert [secret for secret in SECRETS if secret.encode() in reply.body] == [], path
        if path in FOLLOWED:
            assert [secret for secret in SECRETS if secret.encode() in first_lines(session, place, query)] == [], path


def first_lines(session: Session, path: str, query: dict[str, str]) -> bytes:
    """Watch a document, and return the first lines of the answer."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(60)
        client.connect(str(session.socket))
        target = f"{path}?{urlencode({**query, 'watch': '1'})}"
        client.sendall(f"GET {target} HTTP/1.1\r\nHost: daemon\r\n\r\n".encode())
        received = b""
        while not received.partition(b"\r\n\r\n")[2].endswith(b"\n\r\n"):
            received += client.recv(1_000_000)
            if b" 200 " not in received[:20]:
                break
        assert b"application/x-ndjson" in received
        return received


def test_logs_traces_recordings_events_and_statuses_contain_no_secret(session: Session) -> None:
    end = time.monotonic() + PATIENCE_S
    while not session.traces and time.monotonic() < end:
        time.sleep(0.1)
    assert session.traces
    found = {f"trace {number}": body for number, body in enumerate(session.traces)}
    session.daemon.wait_line("hello password=***")
    found["log"] = "\n".join(session.daemon.lines).encode()
    recorded = [path for path in (session.folder / "flight").rglob("*") if path.is_file()]
    assert recorded
    found |= {str(path): path.read_bytes() for path in recorded}
    for kind in ("events.events.k8s.io", "packagerepositories.wharfinger.dev", "packageindexes.wharfinger.dev"):
        found[kind] = session.kubectl("get", kind, "-A", "-o", "yaml").encode()
    status = "jsonpath={.items[*].status}"
    found["status"] = session.kubectl("get", "applications.wharfinger.dev", "-A", "-o", status).encode()
    assert found["status"]
    for where, content in found.items():
        assert [secret for secret in SECRETS if secret.encode() in content] == [], where


def test_no_secret_reaches_an_agent(session: Session) -> None:
    async def ask() -> None:
        arguments = ["-m", "wharfinger", "mcp", "--socket", str(session.socket)]
        async with Client(StdioServerParameters(command=sys.executable, args=arguments)) as client:
            for tool in ("why", "history", "graph", "diff"):
                text = str((await client.call_tool(tool, {"package": "default.shop"})).content)
                assert [secret for secret in SECRETS if secret in text] == [], tool

    trio.run(ask)


def test_control_characters_of_hooks_are_escaped_on_a_terminal(session: Session) -> None:
    for line in ("logs default.shop", "describe default.shop", "get hooks -o wide", "history default.shop --all"):
        code, received = session.in_terminal(*words_of(line))
        assert code == 0, received
        assert is_safe(received, allow="\r\n"), (line, received)
    _, received = session.in_terminal("logs", "default.shop")
    assert "\\x1b[31mred" in received


def test_describe_shows_all_sections_of_a_real_package(session: Session) -> None:
    text = session.run("describe", "default.shop").stdout
    sections = re.findall(r"^([A-Z][A-Za-z ]+):$", text, re.MULTILINE)
    assert sections == ["What to do", "Conditions", "Settings", "Resources", "Hooks", "Recent decisions", "Events"]
    assert re.search(r"^  Deployment.apps +default/web +Current$", text, re.MULTILINE)
    assert "apiToken: '***'" in text
    document = json.loads(session.run("describe", "default.shop", "-o", "json").stdout)
    assert document["package"]["name"] == "default.shop"
    assert {each["reason"] for each in document["events"]} == {"Installed"}


def test_logs_show_lines_of_a_real_hook(session: Session) -> None:
    text = session.run("logs", "default.shop", "--hook", "hooks/a.sh").stdout
    assert "hello password=***" in text
    assert all("hooks/a.sh" in line for line in text.splitlines())
    last = session.run("logs", "default.shop", "--tail", "1").stdout.splitlines()
    assert len(last) == 1
    lines = [json.loads(line) for line in session.run("logs", "default.shop", "-o", "json").stdout.splitlines()]
    numbers = [line["number"] for line in lines]
    assert numbers == sorted(set(numbers))
    assert {line["package"] for line in lines} == {"default.shop"}


def test_the_next_apply_changes_exactly_the_reported_difference(session: Session) -> None:
    """Users change objects while the package is suspended. When the package is resumed, exactly these changes are undone."""
    kubectl = session.kubectl
    kubectl("patch", "application.wharfinger.dev", "shop", "--type=merge", '--patch={"spec":{"suspend":true}}')
    state = "--for=jsonpath={.status.summary.state}=Suspended"
    kubectl("wait", state, "application.wharfinger.dev/shop", "--timeout=100s")
    kubectl("patch", "configmap", "out", "--type=merge", '--patch={"data":{"mode":"changed"}}')
    kubectl("patch", "secret", "login", "--type=merge", '--patch={"stringData":{"password":"changed-by-hand"}}')
    kubectl("delete", "deployment", "web")
    check_golden("difference.txt", transcript(session, ("diff default.shop", "diff default.shop -o yaml")))
    _, received = session.in_terminal("diff", "default.shop")
    assert "\x1b[32m+ Deployment.apps default/web\x1b[0m" in received
    kubectl("patch", "application.wharfinger.dev", "shop", "--type=merge", '--patch={"spec":{"suspend":false}}')
    kubectl("wait", "--for=jsonpath={.data.mode}=calm", "configmap/out", "--timeout=100s")
    kubectl("wait", "--for=create", "deployment/web", "--timeout=100s")
    assert session.run("wait", "default.shop", "--timeout", "100s").returncode == 0
    assert session.run("diff", "default.shop").returncode == 0


def test_only_a_difference_is_coloured_on_a_terminal(session: Session) -> None:
    for line in ("get packages", "wait default.shop --timeout 100s", "describe default.shop"):
        code, received = session.in_terminal(*words_of(line))
        assert code == 0
        assert "\x1b" not in received, line


def test_a_local_package_is_installed_upgraded_rolled_back_and_removed(session: Session) -> None:
    """The output of the commands for these steps is compared with a golden transcript."""
    for name, version in (("one", "1.0.0"), ("two", "1.1.0")):
        chart(session.folder / "charts" / name, "web", version)
    before = transcript(session, INSTALLING)
    state = "--for=jsonpath={.status.summary.state}=RolledBack"
    session.kubectl("wait", state, "application.wharfinger.dev/mine", "--timeout=100s")
    text = f"{before}\n{transcript(session, REMOVING)}"
    check_golden("installing.txt", PASSING.sub("", text))


def test_requests_print_the_golden_transcript(session: Session) -> None:
    """This test runs last in the session, because it interrupts the work on the package."""
    check_golden("requests.txt", transcript(session, REQUESTS))
    session.kubectl("wait", "--for=condition=Ready", "application.wharfinger.dev/shop", "--timeout=100s")
