"""The program of a rule worker (``python -I -m wharfinger.formats.cel.worker [CPU seconds]``).

It evaluates rules until its stdin ends. Rules run in a separate process, because the library that evaluates them holds the
interpreter's lock and cannot be interrupted. The library limits the steps of an expression, but neither the memory of a step
nor the time of all steps together, and a deeply nested value can crash the process. So a bad rule can end a worker, but never
the daemon. :mod:`wharfinger.packages.settings.cel_pool` communicates with a worker and replaces it.

A worker process has a limited address space and a limited CPU time for each request, and cannot write files or core dumps. The
time limit is on CPU time and not on wall-clock time, so a rule is not blamed for a busy machine. If a request exceeds this
limit, the signal SIGXCPU ends the process, and from this signal the daemon knows the reason. The process's environment is
emptied. After a request that ran out of memory the process ends, to free that memory.
"""

import os
import sys
from collections import OrderedDict
from typing import TYPE_CHECKING, BinaryIO, Final

from wharfinger.formats.cel.protocol import CelProtocolError, decode_request, encode_at, encode_findings
from wharfinger.formats.json.value import as_object, decode_json
from wharfinger.formats.worker_limits import allow_cpu_time, limit_process

if TYPE_CHECKING:
    from wharfinger.formats.cel.rules import CompiledRules

CPU_S: Final = 5
"""The limit of CPU time for one request in seconds, unless the command line sets another; it may be exceeded by up to a
second."""
REQUEST_BYTES: Final = 32 * 1024 * 1024
SCHEMAS_KEPT: Final = 64


class Schemas:
    """A cache of compiled rules, with the text of their SchemaRules as the key. It keeps the most recently used ones."""

    def __init__(self) -> None:
        # The daemon imports this module only for its name, and must not load the library.
        from wharfinger.formats.cel.rules import CompiledRules, compile_rules  # noqa: PLC0415

        self._compile = compile_rules
        self._kept: OrderedDict[bytes, CompiledRules] = OrderedDict()

    def get(self, rules: bytes) -> "CompiledRules":
        """Return the compiled rules, with a finding for each rule that does not compile. Raises FormatError if the bytes are not
        rules.
        """
        found = self._kept.get(rules)
        if found is None:
            node = as_object(decode_json(rules, max_bytes=REQUEST_BYTES, what="the rules"), "the rules")
            found = self._kept[rules] = self._compile(node)
            if len(self._kept) > SCHEMAS_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(rules)
        return found


def serve(requests: BinaryIO, answers: BinaryIO, cpu_s: int = CPU_S) -> None:
    """Answer requests until the input ends. Each request may take ``cpu_s`` seconds of CPU time.

    Raises FormatError for an invalid request.
    """
    schemas = Schemas()

    def at(place: str) -> None:
        answers.write(encode_at(place))
        answers.flush()

    while line := requests.readline(REQUEST_BYTES + 1):
        if not line.endswith(b"\n"):
            if len(line) > REQUEST_BYTES:
                raise CelProtocolError(f"cel: a request of more than {REQUEST_BYTES} bytes")
            return  # in the middle of a request: the daemon is gone
        allow_cpu_time(cpu_s)
        request = decode_request(line)
        rules = schemas.get(request.rules)
        outcome = rules.evaluated(request, at) if request.has_self else rules.checked()
        answers.write(encode_findings(outcome.findings))
        answers.flush()
        if outcome.out_of_memory:
            return


def main() -> None:
    """Limit the process, then answer the requests on stdin."""
    limit_process()
    with open(os.dup(1), "wb") as answers:  # noqa: PTH123 - a descriptor
        os.dup2(2, 1)  # the library's own output is not an answer
        serve(sys.stdin.buffer, answers, int(sys.argv[1]) if len(sys.argv) > 1 else CPU_S)


if __name__ == "__main__":
    main()
