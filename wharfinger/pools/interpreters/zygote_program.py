"""The program of a zygote: an interpreter that has started, and forks workers that wait for a script to run.

The interpreter of the scripts runs it as a program of its own: it imports nothing of Wharfinger and uses only features of
Python 3.8. `wharfinger.pools.interpreters.zygote` starts it and communicates with it.

    zygote_program.py FD

FD is a socket (SOCK_SEQPACKET). First the zygote reports a line of JSON: the interpreter's version and the folders of the modules
that it has loaded, or why it cannot serve. Then each packet that it receives requests a worker. The packet contains the token of
the worker and three descriptors: the worker's control socket, stdout and stderr. The zygote ends when the socket is closed.

A worker is forked with CLONE_PARENT, so it is a child of the zygote's parent, which waits for it, measures it and signals it like
any other child. It leads a session of its own. On its control socket it reports its process id (4 bytes), and then waits for a
job: 4 bytes of length, and JSON. When everything is in place, it answers ``S`` and starts the script. Otherwise, it answers ``R``
with the reason, and ends. It also ends when its control socket is closed, because then the parent is gone or does not need it.

The script runs in a new ``__main__``. Exceptions, exit codes, threads, ``atexit`` and the flushing of output behave as in a new
process. Two steps of the interpreter's end are skipped: the zygote's own modules are not taken apart, and OpenSSL does not free
its memory.
"""

from __future__ import annotations

import sys

if not getattr(sys.flags, "safe_path", False):
    del sys.path[0]  # the folder of this file, from which scripts must not import

_AT_START = frozenset(sys.modules)

import ctypes
import gc
import importlib
import importlib.machinery
import json
import os
import resource
import signal
import socket
import threading
import time
import types
from typing import TYPE_CHECKING, TypedDict, cast

if TYPE_CHECKING:
    from wharfinger.pools.interpreters import script_end

_MARKER = b"WHARFINGER_RUN="
_TOKEN_CHARS = 32
_CLONE_PARENT = 0x0000_8000
_CLONE_CHILD_CLEARTID = 0x0020_0000
_CLONE_CHILD_SETTID = 0x0100_0000
_CLONE = {"x86_64": 56, "aarch64": 220}
"""The system call number of clone(2) on each type of machine."""
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38
_PR_GET_TID_ADDRESS = 40
_OPENSSL_INIT_NO_ATEXIT = 0x0008_0000
"""A flag of OPENSSL_init_crypto(3)."""
_PR_SET_NAME = 15
_FDS = 3
_PACKET_BYTES = 256
_MOST_FOLDERS = 16
_MAX_JOB_BYTES = 16 * 1024 * 1024

_PRELOADED = (
    "argparse", "base64", "collections", "contextlib", "copy", "dataclasses", "datetime", "fnmatch", "functools", "glob",
    "hashlib", "itertools", "logging", "math", "pathlib", "random", "re", "shutil", "string", "subprocess", "tempfile",
    "threading", "traceback", "typing", "urllib.request", "yaml",
)  # fmt: skip
"""Modules that scripts often import, and whose import has no side effects."""

_REHEARSAL = """
import os, sys, json
def function(number):
    return [str(each) for each in range(number)]
class Kind:
    def __init__(self): self.found = function(9)
try:
    json.loads("[")
except ValueError as error:
    text = repr(error) + str(Kind().found)
"""

if not TYPE_CHECKING:
    # Executed, not imported: an import would leave a module that no script expects, and bytecode in the folder of this file.
    script_end = types.ModuleType("script_end")
    _file = os.path.join(os.path.dirname(os.path.abspath(__file__)), "script_end.py")
    with open(_file, "rb") as _opened:
        exec(compile(_opened.read(), _file, "exec", dont_inherit=True), vars(script_end))  # noqa: S102 - our own

_process = ctypes.PyDLL(None, use_errno=True)
"""The functions of the C library. A call does not release the interpreter's lock (GIL): no other thread needs the lock."""


class Job(TypedDict):
    """The job of a worker: see `wharfinger.pools.interpreters.workers.Job`."""

    name: str
    argv: list[str]
    interpreter: list[str]
    cwd: str
    environment: dict[str, str]
    user: list[int] | None
    limits: dict[str, int]


class Unfit(Exception):  # noqa: N818 - it is no error of this program
    """This interpreter or this system cannot serve as a zygote."""


class Zygote:
    """The state of this zygote: the facts that each fork of a worker needs. They are determined only once."""

    def __init__(self, own: socket.socket) -> None:
        machine = os.uname().machine
        if machine not in _CLONE:
            raise Unfit(f"the number of clone(2) is not known for {machine}")
        self.own = own
        self.kept: types.ModuleType | None = None
        self.null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self.loaded = {name.partition(".")[0] for name in sys.modules.keys() - _AT_START}
        self.home = os.environ.get("HOME")
        self.zone = os.environ.get("TZ")
        self.coerced = os.environ.get("LC_CTYPE")
        self.main_names = {
            name: value
            for name, value in vars(sys.modules["__main__"]).items()
            if name in ("__annotations__", "__builtins__")
        }
        self._number = _CLONE[machine]
        self._thread_id = _address_of_thread_id()
        self._token = _address_of_token()
        self.run_file = ctypes.pythonapi.PyRun_SimpleFileExFlags
        self.run_file.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]
        self.run_file.restype = ctypes.c_int
        self.file_loader = importlib.machinery.SourceFileLoader
        self.end = script_end.ScriptEnd()
        self.open_file = _process.fopen
        self.open_file.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
        self.open_file.restype = ctypes.c_void_p

    def fork(self) -> int:
        """Fork a process that becomes a child of this process's parent. In the new process, return 0; otherwise return its pid.

        Everything else is as with fork(2) and os.fork.
        """
        flags = _CLONE_PARENT | _CLONE_CHILD_SETTID | _CLONE_CHILD_CLEARTID | signal.SIGCHLD
        # clone(flags, stack, parent_tid, child_tid, tls); the last two are the other way round on arm64.
        last = (self._thread_id, 0) if self._number == _CLONE["x86_64"] else (0, self._thread_id)
        ctypes.pythonapi.PyOS_BeforeFork()
        pid = _process.syscall(
            ctypes.c_long(self._number),
            ctypes.c_long(flags),
            ctypes.c_void_p(0),
            ctypes.c_void_p(0),
            ctypes.c_void_p(last[0]),
            ctypes.c_void_p(last[1]),
        )
        if pid == 0:
            ctypes.pythonapi.PyOS_AfterFork_Child()
        else:
            ctypes.pythonapi.PyOS_AfterFork_Parent()
        return int(pid)

    def put_token(self, token: bytes) -> None:
        """Write the worker's token over that of the zygote, in the memory from which /proc shows the environment of a process.

        Children that the script forks have this memory, too, so they are found by the token of their run.
        """
        ctypes.memmove(self._token, token, _TOKEN_CHARS)


def _omit_cleanup_of_openssl() -> None:
    """Initialize OpenSSL without its exit handler, which takes a millisecond to free memory that the process gives back anyway.

    Modules that use OpenSSL do not initialize it again. Do nothing if the interpreter has no OpenSSL, or if its OpenSSL lacks
    the function ``OPENSSL_init_crypto``.
    """
    try:
        found = importlib.machinery.PathFinder.find_spec("_hashlib")
        library = ctypes.CDLL(found.origin) if found is not None else None
        initialize = library.OPENSSL_init_crypto if library is not None else None
    except (AttributeError, OSError):
        return
    if initialize is not None:
        initialize(ctypes.c_uint64(_OPENSSL_INIT_NO_ATEXIT), ctypes.c_void_p())


def _preload() -> None:
    """Import the modules that scripts often need, if this interpreter has them. Raises Unfit if that starts a thread."""
    for name in _PRELOADED:
        try:
            importlib.import_module(name)
        except ImportError:
            pass
    if len(os.listdir("/proc/self/task")) > 1:
        raise Unfit("one of the modules that it loads at its start has started a thread")


def _folders() -> dict[str, int]:
    """Return the folders of the loaded modules that are not Python's own, with the time of their last change.

    If a package is reinstalled, the time changes, and a new process would load other modules.
    """
    own = os.path.dirname(os.__file__)
    found: dict[str, int] = {}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None) or ""
        folder = os.path.dirname(file)
        if not os.path.isabs(file) or file == os.path.abspath(__file__):
            continue
        if os.path.dirname(folder + "/").startswith(own) and "-packages" not in folder:
            continue
        if len(found) < _MOST_FOLDERS:
            found[folder] = os.stat(folder).st_mtime_ns
    return found


def _address_of_thread_id() -> int:
    """Return the address where the C library keeps the id of this thread; a fork writes a new id there. Raises Unfit."""
    found = ctypes.c_void_p()
    if _process.prctl(_PR_GET_TID_ADDRESS, ctypes.byref(found), 0, 0, 0) != 0 or not found.value:
        raise Unfit("the kernel does not support prctl(PR_GET_TID_ADDRESS)")
    if ctypes.c_int.from_address(found.value).value != os.getpid():
        raise Unfit("the C library does not keep the thread id at the address that prctl(PR_GET_TID_ADDRESS) returns")
    return found.value


def _address_of_token() -> int:
    """Return the address of the last token in the variable WHARFINGER_RUN, in the environment with which this process was
    started. Raises Unfit.
    """
    variables = ctypes.POINTER(ctypes.c_void_p).in_dll(_process, "environ")
    number = 0
    while variables[number]:
        address = variables[number] or 0
        text = ctypes.string_at(address)
        if text.startswith(_MARKER) and len(text) >= len(_MARKER) + _TOKEN_CHARS:
            return address + len(text) - _TOKEN_CHARS
        number += 1
    raise Unfit("its environment has no marker of this daemon's processes")


def main() -> None:
    """Fork workers until the socket is closed. Return only if this interpreter is unfit, or in a worker whose script has run."""
    own = socket.socket(fileno=int(sys.argv[1]))
    own.set_inheritable(False)
    try:
        _omit_cleanup_of_openssl()
        _preload()
        zygote = Zygote(own)
    except (Unfit, AttributeError, ValueError) as error:
        own.send(json.dumps({"unfit": str(error)}).encode())
        return
    own.send(json.dumps({"version": sys.version.split()[0], "folders": _folders()}).encode())
    gc.collect()
    gc.freeze()
    while True:
        packet, fds = _receive(own)
        if not packet:
            os._exit(0)
        if len(fds) == _FDS and zygote.fork() == 0:
            _run(zygote, *_wait_for_job(zygote, packet, fds))
            return
        for fd in fds:
            os.close(fd)


def _receive(own: socket.socket) -> tuple[bytes, list[int]]:
    """Return the next packet and its descriptors; an empty packet if the socket is closed."""
    packet, ancillary, _, _ = own.recvmsg(_PACKET_BYTES, socket.CMSG_SPACE(_FDS * 4), socket.MSG_CMSG_CLOEXEC)
    fds: list[int] = []
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds += memoryview(data).cast("i").tolist()
    return packet, fds


def _wait_for_job(zygote: Zygote, token: bytes, fds: list[int]) -> tuple[str, bytes]:
    """Act as a worker: wait for a job, prepare it, and return the path and the content of its script. Without a job, end the
    process.
    """
    os.setsid()
    vars(threading.main_thread())["_native_id"] = threading.get_native_id()  # a fork does not update this attribute
    zygote.put_token(token)
    control = socket.socket(fileno=fds[0])
    os.dup2(zygote.null, 0)
    os.dup2(fds[1], 1)
    os.dup2(fds[2], 2)
    for fd in (fds[1], fds[2], zygote.null):
        os.close(fd)
    zygote.own.close()
    control.sendall(os.getpid().to_bytes(4, "big"))
    _rehearse(zygote)
    job = _job(control)
    if job is None:
        os._exit(0)
    try:
        _prepare(zygote, job)
        with open(job["argv"][0], "rb") as file:
            source = file.read()
    except Exception as error:  # noqa: BLE001 - whatever it is, the script has not begun, and can be started anew
        control.sendall(b"R" + str(error).encode("utf-8", "replace")[:1000])
        os._exit(0)
    control.sendall(b"S")
    control.close()
    return job["argv"][0], source


def _rehearse(zygote: Zygote) -> None:
    """Perform the steps of a job once while the worker is idle. A later job then need not wait while the kernel copies the
    memory pages to which it writes.
    """
    environment = json.loads(json.dumps(dict(os.environ)))
    os.environ.clear()
    os.environ.update(environment)
    _check(zygote, __file__)
    _find_user_site()
    names = {"__builtins__": zygote.main_names["__builtins__"]}
    exec(compile(_REHEARSAL, "<rehearsal>", "exec", dont_inherit=True), names)  # noqa: S102 - our own
    script_end.clear(names)
    del names
    script_end.flush()
    gc.collect()
    script_end.has_finalizer_left()


def _job(control: socket.socket) -> Job | None:
    """Wait for the job. Return None if the socket is closed."""
    size = int.from_bytes(_exactly(control, 4), "big")
    data = _exactly(control, size) if 0 < size <= _MAX_JOB_BYTES else b""
    return cast("Job", json.loads(data)) if data else None


def _exactly(control: socket.socket, size: int) -> bytes:
    """Return exactly ``size`` bytes; no bytes if the socket is closed before that."""
    data = b""
    while len(data) < size:
        chunk = control.recv(size - len(data))
        if not chunk:
            return b""
        data += chunk
    return data


def _prepare(zygote: Zygote, job: Job) -> None:
    """Make this forked process like a newly started one: its limits, user, folder, environment and command line. Raises OSError
    and ValueError.
    """
    os.environ.clear()
    os.environ.update(job["environment"])
    if zygote.coerced is not None:
        # If no locale is set, Python sets this variable when it starts (PEP 538). Otherwise, the job's own value is kept.
        os.environ["LC_CTYPE"] = zygote.coerced
    if os.environ.get("TZ") != zygote.zone:
        time.tzset()
    os.chdir(job["cwd"])
    if job["user"] is not None:
        uid, gid = job["user"]
        _become(uid, gid)
    for name, value in job["limits"].items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (bound, bound))
    script = job["argv"][0]
    _check(zygote, script)
    _process.prctl(_PR_SET_NAME, os.fsencode(job["name"]), 0, 0, 0)  # the kernel keeps the first 15 bytes
    sys.argv[:] = job["argv"]
    if hasattr(sys, "orig_argv"):  # Python 3.10
        sys.orig_argv[:] = [*job["interpreter"], *job["argv"]]
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, os.path.dirname(os.path.realpath(script)))
    if os.environ.get("HOME") != zygote.home:
        _find_user_site()


def _become(uid: int, gid: int) -> None:
    """Become another user permanently, like setpriv(1) with --no-new-privs. The process has no supplementary groups then."""
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    for option in (_PR_SET_NO_NEW_PRIVS, _PR_SET_DUMPABLE):  # execve(2) would set the second one
        if _process.prctl(option, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), f"prctl({option})")


def _check(zygote: Zygote, script: str) -> None:
    """Raise ValueError for a script that would run differently in a new interpreter: a file in the script's folder has the name
    of a module that is loaded already, or the script is an archive.
    """
    for entry in os.listdir(os.path.dirname(os.path.realpath(script))):
        if entry.partition(".")[0] in zygote.loaded:
            raise ValueError(f"{entry} in its folder has the name of a module that the interpreter has loaded already")
    for hook in sys.path_hooks:
        try:
            hook(script)
        except ImportError:
            continue
        raise ValueError("the script is an archive")


def _find_user_site() -> None:
    """Find the folder of the user's own Python packages below the current home.

    Raises ValueError if the folder exists, because a new process would import packages from it.
    """
    site = sys.modules.get("site")
    if site is not None and site.ENABLE_USER_SITE:
        vars(site).update(USER_BASE=None, USER_SITE=None)
        if os.path.isdir(site.getusersitepackages()):
            raise ValueError("the user's home has Python packages, which a new process would import")


def _run(zygote: Zygote, script: str, source: bytes) -> None:
    """Run the script as the main program, and end the process. Return only if the interpreter has to end the process itself,
    as it does after any main program.
    """
    main_module = types.ModuleType("__main__")
    vars(main_module).update(zygote.main_names)
    if "__annotations__" in zygote.main_names:
        main_module.__annotations__ = {}
    zygote.kept = sys.modules["__main__"]  # the functions below still use the names in this module
    sys.modules["__main__"] = main_module
    names = vars(main_module)
    del main_module
    code = _compiled(source, script)
    if code is None:
        _run_file(zygote, script)
        return
    names["__file__"], names["__cached__"] = script, None
    names["__loader__"] = zygote.file_loader("__main__", script)
    caught = _caught(code, names)
    script_end.flush()
    if isinstance(caught, SystemExit):
        status = zygote.end.status_of(caught.code)
    else:
        status = 0 if caught is None else zygote.end.report(caught)
        names.pop("__file__", None)
        names.pop("__cached__", None)
    del names, code
    if isinstance(caught, KeyboardInterrupt):
        zygote.end.note_interrupt()
        return
    del caught
    zygote.end.end(status)


def _compiled(source: bytes, script: str) -> types.CodeType | None:
    """Return the script's code; None if it has an error, which the interpreter reports."""
    try:
        return compile(source, script, "exec", dont_inherit=True)
    except Exception:  # noqa: BLE001 - of any kind, if warnings are errors
        return None


def _caught(code: types.CodeType, names: dict[str, object]) -> BaseException | None:
    """Run the code; return the exception that ended it, without the frames of this program, or None if there was none."""
    try:
        exec(code, names)  # noqa: S102 - that is the purpose
    except BaseException as error:  # noqa: BLE001 - reported as the interpreter does
        error.__traceback__ = error.__traceback__.tb_next if error.__traceback__ is not None else None
        return error
    return None


def _run_file(zygote: Zygote, script: str) -> None:
    """Run the script with the interpreter's own function for files; the interpreter then ends as usual."""
    opened = zygote.open_file(os.fsencode(script), b"rb")
    if not opened or zygote.run_file(opened, os.fsencode(script), 1, None):
        sys.exit(1)


if __name__ == "__main__":
    main()
