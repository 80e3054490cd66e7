"""The end of a script in a worker: its exit status, its last output, and the end of the interpreter.

This module is a part of the program of a zygote (:mod:`zygote_program`), which loads this file by its path into the interpreter
of the scripts. So the module imports nothing of Wharfinger, and uses only features of Python 3.8. CPython's pylifecycle.c and
pythonrun.c define what an interpreter does at its end.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import sys
import threading
import weakref
from typing import cast

_ENDED_FIRST = (
    "path", "argv", "ps1", "ps2", "last_exc", "last_type", "last_value", "last_traceback", "path_hooks",
    "path_importer_cache", "meta_path",
)  # fmt: skip
"""The names in ``sys`` that an interpreter sets to None before it takes any module apart (CPython's pylifecycle.c)."""


class ScriptEnd:
    """The functions that end a worker's script and interpreter as Python does. The zygote makes the instance when all modules
    except the script's own ones are loaded; later modules count as modules of the script.
    """

    def __init__(self) -> None:
        self.run_string = ctypes.pythonapi.PyRun_SimpleString
        self.run_string.argtypes = [ctypes.c_char_p]
        self.run_string.restype = ctypes.c_int
        self.run_exit_functions = vars(atexit)["_run_exitfuncs"]
        self.end_threads = vars(threading)["_shutdown"]
        self.reference = weakref.ref
        self.reading: object = None
        self.all = frozenset(sys.modules)
        self._exit = ctypes.PyDLL(None).exit

    def status_of(self, code: object) -> int:
        """Return the exit status for the code of a SystemExit. None means 0. For a number, the status is its last
        8 bits. Any other code is printed, and the status is 1.

        For a number of more than 64 bits, the interpreter itself ends the process here, because different versions of Python
        treat such a number differently.
        """
        if code is None:
            return 0
        if isinstance(code, int):
            if not -(2**63) <= code < 2**63:
                self.run_string(b"raise SystemExit(%d)" % code)
            return code & 0xFF
        try:
            print(code, file=sys.stderr)
        except Exception:  # noqa: BLE001, S110 - as the interpreter does
            pass
        return 1

    def report(self, error: BaseException) -> int:
        """Print an exception that nothing has caught, and return the exit status."""
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
        if sys.version_info >= (3, 12):
            sys.last_exc = error
        second = _caught_from_hook(error)
        if isinstance(second, SystemExit):
            return self.status_of(second.code)
        if second is not None:
            print("Error in sys.excepthook:", file=sys.stderr)
            sys.__excepthook__(type(second), second, second.__traceback__)
            print("\nOriginal exception was:", file=sys.stderr)
            sys.__excepthook__(type(error), error, error.__traceback__)
        return 1

    def note_interrupt(self) -> None:
        """Make the interpreter end as after an interrupted main program: it then kills itself with SIGINT."""
        hook, sys.excepthook = sys.excepthook, lambda *_: None
        self.run_string(b"raise KeyboardInterrupt")
        sys.excepthook = hook

    def end(self, status: int) -> None:
        """End the interpreter with this status.

        An interpreter takes apart all modules when it ends. Most of them were loaded by the zygote, and the kernel frees their
        memory anyway. So threads, ``atexit`` and streams get their usual end, and then only the modules that the script loaded
        are taken apart. If an object is left that must be finalized (an open file, a generator, ``__del__``), or a step fails,
        the interpreter shuts down in its usual way; the steps here are harmless if they are repeated.
        """
        try:
            self.end_threads()
            self.run_exit_functions()
            sys.stdout.flush()
            sys.stderr.flush()
            if self._take_apart():
                sys.stdout.flush()
                sys.stderr.flush()
                self._exit(status)
        except BaseException:  # noqa: BLE001, S110 - the error occurs again in sys.exit, which reports it
            pass
        sys.exit(status)

    def _take_apart(self) -> bool:
        """Take apart the modules that the script loaded. Return False if an object that must be finalized still exists
        afterwards.
        """
        for name in _ENDED_FIRST:
            setattr(sys, name, None)
        sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__
        own = [("__main__", self.reference(sys.modules["__main__"]))]
        # From the newest module to the oldest. The zygote's modules are not touched, because a write would copy their memory.
        for name in reversed(sys.modules):
            if name in self.all:
                break
            module = sys.modules[name]
            if module is not None:
                own.insert(1, (name, self.reference(module)))
            del module
        loaded = cast("dict[str, object]", sys.modules)
        # At this point of its shutdown, an interpreter reads no more sources for tracebacks.
        self.reading = loaded.pop("io", None)
        for name, _ in own:
            loaded[name] = None
        gc.collect()
        for _, reference in reversed(own):
            if (left := reference()) is not None:
                clear(vars(left))
            del left
        gc.collect()
        if has_finalizer_left():
            loaded["io"] = self.reading
            return False
        return True


def _caught_from_hook(error: BaseException) -> BaseException | None:
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except BaseException as second:  # noqa: BLE001 - of a hook that the script has set
        second.__traceback__ = second.__traceback__.tb_next if second.__traceback__ is not None else None
        return second
    return None


def flush() -> None:
    """Flush the standard streams, as the interpreter does after a script. Errors are ignored: they occur again at the end."""
    for stream in (sys.stderr, sys.stdout):
        try:
            stream.flush()
        except Exception:  # noqa: BLE001, S110 - as the interpreter does
            pass


def has_finalizer_left() -> bool:
    """Return whether any object that was made since the start of the worker has a ``__del__`` method."""
    for each in gc.get_objects():
        if hasattr(type(each), "__del__"):
            return True
    return False


def clear(names: dict[str, object]) -> None:
    """Set the names of a module to None, except ``__builtins__``, in the same order as the interpreter at its end."""
    for private in (True, False):
        for name in list(names):
            if name != "__builtins__" and (name[:1] == "_" and name[1:2] != "_") >= private:
                names[name] = None
