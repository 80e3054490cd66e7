"""Record the answers of a real kube-apiserver. ``replay`` compares the embedded control plane with these recordings.

A scenario is a YAML file in ``scenarios/``. It has a description and steps, and each step is one request::

    about: create and read a ConfigMap
    steps:
      - note: create
        POST: /api/v1/namespaces/$ns/configmaps
        body: {metadata: {name: a}}
      - note: read what was created
        GET: /api/v1/namespaces/$ns/configmaps/a?resourceVersion={{2.metadata.resourceVersion}}

``$ns`` is a namespace of this scenario. It is created by an additional step 1, unless the file has ``namespace: none``.
``{{STEP.path}}`` is a value from the answer to an earlier step. A step may have these fields:

- ``headers``: additional headers. The value null removes a default header.
- ``body``: an object, or a string that is sent unchanged (``"\\uDCFF"`` is the byte FF).
- ``until``: a part of the answer's body. The request is repeated until the answer contains this part.
- ``differs``: the reason for an intentional difference of the embedded control plane.

``python -m tests.control_plane.recorded_answers.recorder --kubeconfig FILE NAME…`` records scenarios, deletes the objects that
they created, and compares the embedded control plane with the recordings. With ``--only-compare``, it only compares.
"""

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx
import yaml

from tests.control_plane.recorded_answers.replay import bytes_of, load_file, replay_offline
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list, find_object, find_str

SCENARIOS: Final = Path(__file__).with_name("scenarios")
RECORDINGS: Final = Path(__file__).with_name("recordings")
METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
SHOWN_HEADERS: Final = ("content-type", "warning", "location", "allow", "retry-after")
SUMMARY_BYTES: Final = 40_000
POLLS: Final = 100
_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME: Final = re.compile(r"20[2-9][0-9]-[0-9]{2}-[0-9]{2}T[0-9:]{8}(?:\.[0-9]{6})?Z")
_TOKEN_VOLUME: Final = re.compile(r"kube-api-access-([a-z0-9]{5})")
_AGE: Final = re.compile(r"\d+(s|m|h|d)(\d+[smh])?")
_REFERENCE: Final = re.compile(r"\{\{(\d+)\.([^}]+)\}\}")


class Placeholders:
    """Names for values that the server chooses, numbered in the order of their first occurrence."""

    def __init__(self, sent: str) -> None:
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._sent = sent

    def name(self, kind: str, value: str) -> str:
        """Return the placeholder for a value. A new value gets a new placeholder."""
        if value not in self._names:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[value] = f"${kind}{self._counts[kind]}"
        return self._names[value]

    def text(self, text: str) -> str:
        """Return a text with placeholders for each known value, each uid and each time."""
        text = _UID.sub(lambda found: self.name("uid", found[0]) if found[0] not in self._sent else found[0], text)
        text = _TIME.sub(lambda found: found[0] if found[0] in self._sent else "$time", text)
        for value, name in sorted(self._names.items(), key=lambda item: -len(item[0])):
            if len(value) > 2:
                text = re.sub(rf"(?<![\w.-]){re.escape(value)}(?![\w-])", lambda _found, name=name: name, text)  # type: ignore[misc]
        return text

    def value(self, value: JsonValue, key: str = "") -> JsonValue:
        """Return a document in which placeholders replace the values that the server chose.

        The placeholders in an object are numbered in the order of its members.
        """
        if isinstance(value, dict):
            self._learn_name(value)
            return {self.text(name): self.value(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [self.value(item, key.removesuffix("s")) for item in value]
        if isinstance(value, int) and key in {"nodePort", "healthCheckNodePort"} and str(value) not in self._sent:
            return self.name("nodePort", str(value))
        return self._string(value, key) if isinstance(value, str) else value

    def _learn_name(self, value: JsonObject) -> None:
        prefix, name = value.get("generateName"), value.get("name")
        if isinstance(prefix, str) and isinstance(name, str) and prefix and name.startswith(prefix) and name != prefix:
            self.name("rand", name[len(prefix) :])
        if isinstance(name, str) and (token := _TOKEN_VOLUME.fullmatch(name)) and name not in self._sent:
            self.name("rand", token[1])

    def _string(self, value: str, key: str) -> str:
        if key == "cell" and _AGE.fullmatch(value):
            return "$age"
        if key == "resourceVersion" and value.isdigit() and value != "0" and value not in self._sent:
            return self.name("rv", value)
        if key == "continue" and value:
            return self.name("continue", value)
        if key == "clusterIP" and re.fullmatch(r"10\.0\.0\.\d+", value) and value not in self._sent:
            return self.name("ip", value)
        if value.startswith("-----BEGIN CERTIFICATE"):
            return "$cert"
        for text, name in list(self._names.items()):
            if name.startswith("$rand") and value.endswith(text):
                return value.removesuffix(text) + name
        return self.text(value)


def record(name: str, client: httpx.Client, token: str) -> list[JsonObject]:
    """Run a scenario against a real server, and return the lines of its recording."""
    scenario = yaml.safe_load((SCENARIOS / f"{name}.yaml").read_text())
    namespace = f"tr-{name}"
    steps: list[JsonObject] = list(scenario["steps"])
    if scenario.get("namespace") != "none":
        first: JsonObject = {"note": "the namespace used below", "POST": "/api/v1/namespaces"}
        steps.insert(0, {**first, "body": {"metadata": {"name": namespace}}})
    sent = json.dumps(steps)
    placeholders, answers = Placeholders(sent), list[JsonValue]()
    lines: list[JsonObject] = [{"scenario": name, "about": find_str(scenario, "about")}]
    for number, step in enumerate(steps, 1):
        method = next(method for method in METHODS if method in step)
        asked = _request(step, method, namespace, answers)
        response = _send(client, asked, token, step.get("until"))
        answers.append(_body(response))
        if number == 1 and scenario.get("namespace") != "none":
            _wait_for_default_account(client, namespace, token)
        request = placeholders.value({**asked, "path": placeholders.text(find_str(asked, "path"))})
        answer: JsonObject = {
            "status": response.status_code,
            "headers": _headers(response, placeholders),
            "body": _shown(response, placeholders),
        }
        line: JsonObject = {"step": number, "note": find_str(step, "note"), "request": request, "response": answer}
        lines.append({**line, **({"poll": True} if "until" in step else {}), **_differs(step)})
    return lines


def _differs(step: JsonObject) -> JsonObject:
    """Return the field ``differs`` of a step, which allows a replayed answer to differ from the recorded one; {} if it is
    absent.
    """
    return {"differs": step["differs"]} if "differs" in step else {}


def _request(step: JsonObject, method: str, namespace: str, answers: list[JsonValue]) -> JsonObject:
    def filled(value: JsonValue) -> JsonValue:
        if isinstance(value, dict):
            return {str(filled(key)): filled(item) for key, item in value.items()}
        if isinstance(value, list):
            return [filled(item) for item in value]
        if not isinstance(value, str):
            return value
        return _REFERENCE.sub(lambda found: _answered(answers, found), value.replace("$ns", namespace))

    request: JsonObject = {"method": method, "path": filled(step[method]), "headers": filled(step.get("headers") or {})}
    return {**request, "body": filled(step["body"])} if "body" in step else {**request, "body": None}


def _answered(answers: list[JsonValue], found: re.Match[str]) -> str:
    path = [int(part) if part.isdigit() else part for part in found[2].split(".")]
    value = answers[int(found[1]) - 1]
    for part in path:
        value = value[part] if isinstance(part, int) and isinstance(value, list) else find(value, str(part))
    return str(value)


def _send(client: httpx.Client, request: JsonObject, token: str, until: JsonValue) -> httpx.Response:
    headers = {
        "accept": "application/json",
        "content-type": "application/json",
        "user-agent": "recorder/1.0",
        "authorization": f"Bearer {token}",
    }
    for name, value in find_object(request, "headers").items():
        headers.pop(name, None)
        if isinstance(value, str):
            headers[name] = value
    body = request.get("body")
    content = body if isinstance(body, str) else "" if body is None else json.dumps(body)
    said = ""
    for _ in range(POLLS):
        response = client.request(
            find_str(request, "method"), find_str(request, "path"), headers=headers, content=bytes_of(content)
        )
        if until is None or _holds(_body(response), until):
            return response
        said = response.text[:2000]
        time.sleep(0.2)
    raise SystemExit(f"{request['path']}: the answer never contained {until}; the last answer was {said}")


def _holds(body: JsonValue, part: JsonValue) -> bool:
    if isinstance(part, dict):
        return isinstance(body, dict) and all(name in body and _holds(body[name], item) for name, item in part.items())
    if isinstance(part, list):
        return isinstance(body, list) and len(part) == len(body) and all(map(_holds, body, part))
    return body == part


def _body(response: httpx.Response) -> JsonValue:
    if not response.headers.get("content-type", "").startswith("application/json") or not response.text:
        return response.text
    if "watch=" in str(response.request.url) and response.status_code == 200:
        return [json.loads(line) for line in response.text.splitlines()]
    parsed: JsonValue = json.loads(response.text)
    return parsed


def _shown(response: httpx.Response, placeholders: Placeholders) -> JsonValue:
    if len(response.content) > SUMMARY_BYTES:
        return {"$summary": f"{len(response.content)} bytes"}
    return placeholders.value(_body(response))


def _headers(response: httpx.Response, placeholders: Placeholders) -> JsonObject:
    found: JsonObject = {}
    for name in SHOWN_HEADERS:
        values = response.headers.get_list(name)
        if values:
            shown = [placeholders.text(value) for value in values]
            found[name] = list(shown) if name == "warning" else shown[0]
    return found


def _wait_for_default_account(client: httpx.Client, namespace: str, token: str) -> None:
    for path in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
        request: JsonObject = {"method": "GET", "path": f"/api/v1/namespaces/{namespace}/{path}", "headers": {}}
        _send(client, request, token, {"metadata": {"namespace": namespace}})


def clean(name: str, lines: list[JsonObject], client: httpx.Client, token: str) -> None:
    """Delete the namespace of a scenario, and the cluster-scoped objects that it created."""
    made = [f"/api/v1/namespaces/tr-{name}"]
    for line in lines[1:]:
        request, answer = find_object(line, "request"), find_object(line, "response")
        path = find_str(request, "path").partition("?")[0]
        body = answer.get("body")
        posted = find_str(request, "method") == "POST" and answer.get("status") == 201 and "/namespaces/" not in path
        named = find(body, "metadata", "name") or find(request, "body", "metadata", "name")  # a Table has no name
        if posted and isinstance(made_name := named, str) and "$" not in made_name:
            made.append(f"{path}/{made_name}")
    for path in made:
        client.request("DELETE", path, headers={"authorization": f"Bearer {token}"})


def _server(kubeconfig: Path) -> tuple[str, str]:
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = find_list(config, "clusters")[0], find_list(config, "users")[0]
    return find_str(cluster, "cluster", "server"), find_str(user, "user", "token")


def differences(names: list[str]) -> Iterator[str]:
    """Yield the differences between the embedded control plane and the recordings."""
    for name in names:
        for step, found in replay_offline(load_file(RECORDINGS / f"{name}.jsonl")):
            yield f"{name} step {step.number} ({step.note}):\n    " + "\n    ".join(found)


def main() -> int:
    """Run the program with the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", metavar="NAME", help="scenarios/NAME.yaml")
    parser.add_argument(
        "--kubeconfig", type=Path, help="kubeconfig of the real server, with the token of an administrator"
    )
    parser.add_argument("--only-compare", action="store_true", help="do not record; compare with recordings/NAME.jsonl")
    args = parser.parse_args()
    if not args.only_compare:
        address, token = _server(args.kubeconfig)
        with httpx.Client(base_url=address, verify=False, timeout=60) as client:  # noqa: S501 - a test server
            for name in args.names:
                lines = record(name, client, token)
                text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
                (RECORDINGS / f"{name}.jsonl").write_bytes(text.encode(errors="backslashreplace"))
                clean(name, lines, client, token)
    found = list(differences(args.names))
    sys.stdout.write(("\n".join(found) or "no differences") + "\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
