# ruff: noqa: E501 - most scripts are one line
"""Scripts that are run cold and warm, and must do the same: outputs, exit status, files."""

from typing import Final

SCRIPTS: Final[dict[str, str]] = {
    "nothing": "pass",
    "output on both streams": "import sys\nprint('out')\nprint('err', file=sys.stderr)",
    "the command line": "import sys\nprint(sys.argv, sys.orig_argv, sys.executable, sys.flags)",
    "the search path": "import sys\nprint(sys.path, sys.prefix, sys.base_prefix)",
    "the names of main": (
        "print(__name__, __file__, __package__, __spec__, __cached__, type(__loader__), __loader__.path, __builtins__)\n"
        "print(sorted(globals()))\nimport __main__\nprint(__main__.__dict__ is globals(), __annotations__)"
    ),
    "annotations of main": "number: int = 3\nprint(__annotations__)",
    "future statements are its own": "def function(value: int) -> str: ...\nprint(function.__annotations__)",
    "the environment": (
        "import os, subprocess\nos.environ['NEW'] = '1'\ndel os.environ['GIVEN']\n"
        "print(sorted(set(os.environ) - {'WHARFINGER_RUN'}))\n"
        "print(subprocess.run(['env'], capture_output=True, text=True).stdout.count('NEW=1'))\n"
        "print(len(os.environ['WHARFINGER_RUN'].split(':')[-1]))"
    ),
    "environment in C": "import os, time\nos.environ['TZ'] = 'Asia/Tokyo'\ntime.tzset()\nprint(time.tzname)",
    "the time zone it is given": "import time\nprint(time.tzname, time.localtime(0).tm_hour)",
    "the working folder": "import os\nprint(os.getcwd(), sorted(os.listdir()))",
    "stdin is empty": "import sys, os\nprint(repr(sys.stdin.read()), os.readlink('/proc/self/fd/0'), sys.stdin.seekable())",
    "streams": (
        "import sys\nfor each in (sys.stdin, sys.stdout, sys.stderr):\n"
        "    print(each.name, each.encoding, each.errors, each.line_buffering, each.isatty(), each.mode)"
    ),
    "descriptors": "import os\nprint(sorted(os.listdir('/proc/self/fd')))",
    "a session of its own": (
        "import os\nprint(os.getpid() == os.getsid(0) == os.getpgrp(), os.getpid() == int(os.readlink('/proc/self')))"
    ),
    "signals": (
        "import signal\nprint([(each.name, str(signal.getsignal(each))) for each in sorted(signal.valid_signals())\n"
        "    if isinstance(each, signal.Signals)])\nprint(signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    ),
    "limits of the kernel": (
        "import resource\nprint([resource.getrlimit(each) for each in range(16)])\nimport os\nprint(os.umask(0), os.nice(0))"
    ),
    "exit status 3": "import sys\nsys.exit(3)",
    "exit status 0 from an exit": "raise SystemExit",
    "exit status -1": "import sys\nsys.exit(-1)",
    "exit status 300": "import sys\nsys.exit(300)",
    "exit status of a large number": "import sys\nsys.exit(2**40 + 7)",
    "exit with a text": "import sys\nprint('before')\nsys.exit('sorry')",
    "exit with a list": "import sys\nsys.exit([1, 2])",
    "exit in a thread": (
        "import sys, threading\nthread = threading.Thread(target=sys.exit, args=(7,))\nthread.start()\nthread.join()\nprint('on')"
    ),
    "os._exit": "import os\nprint('lost')\nos._exit(9)",
    "exception": "def function():\n    raise ValueError('no')\nprint('first')\nfunction()",
    "exception with a cause": (
        "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise RuntimeError('later') from error"
    ),
    "exception group": "raise ExceptionGroup('both', [ValueError(1), TypeError(2)])",
    "exception with notes": "error = ValueError('x')\nerror.add_note('look here')\nraise error",
    "exception in a thread": (
        "import threading\nthread = threading.Thread(target=lambda: 1 / 0, name='worker')\nthread.start()\nthread.join()\nprint('on')"
    ),
    "recursion": "def deeper():\n    deeper()\ntry:\n    deeper()\nexcept RecursionError as error:\n    print(error)",
    "syntax error": "print('never')\nif True\n    pass",
    "indentation error": "if True:\npass",
    "null byte": "print('a')\nx = '\0'",
    "not UTF-8": "print('caf\udce9')",
    "another encoding": "# -*- coding: latin-1 -*-\nprint(ascii('caf\udce9'))",
    "syntax warning": "print('a' is 'a')",
    "warnings": "import warnings\nwarnings.warn('old')\nwarnings.warn('older', DeprecationWarning)",
    "excepthook": "import sys\nsys.excepthook = lambda kind, value, trace: print('hook', kind.__name__, value)\nraise ValueError(1)",
    "excepthook that fails": "import sys\ndef hook(*_):\n    1 / 0\nsys.excepthook = hook\nraise ValueError(1)",
    "excepthook that exits": "import sys\nsys.excepthook = lambda *_: sys.exit(5)\nraise ValueError(1)",
    "the last exception": (
        "import atexit, sys\natexit.register(lambda: print(sys.last_type, sys.last_value, sys.last_traceback.tb_lineno))\nraise ValueError(1)"
    ),
    "interrupt": "raise KeyboardInterrupt",
    "interrupted by a signal": "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nfor _ in range(10**9): pass",
    "interrupt with an end": (
        "import atexit\nclass Kind:\n    def __del__(self): print('del')\nkept = Kind()\natexit.register(print, 'end')\nraise KeyboardInterrupt"
    ),
    "interrupt that is caught": (
        "import os, signal\ntry:\n    os.kill(os.getpid(), signal.SIGINT)\n    for _ in range(10**9): pass\n"
        "except KeyboardInterrupt:\n    print('caught')"
    ),
    "killed by SIGTERM": "import os, signal\nprint('x', flush=True)\nos.kill(os.getpid(), signal.SIGTERM)",
    "SIGTERM that is handled": (
        "import os, signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(4))\nos.kill(os.getpid(), signal.SIGTERM)\n"
        "for _ in range(10**9): pass"
    ),
    "abort": "import os\nos.abort()",
    "segmentation fault": "import ctypes\nctypes.string_at(0)",
    "broken pipe": "import os, sys\nr, w = os.pipe()\nos.close(r)\nos.write(w, b'x')",
    "atexit": "import atexit\natexit.register(print, 'last')\natexit.register(print, 'first')\nprint('main')",
    "atexit that fails": "import atexit\natexit.register(lambda: 1 / 0)\natexit.register(print, 'first')",
    "atexit after an exception": "import atexit\natexit.register(print, 'end')\nraise ValueError",
    "threads that outlive main": (
        "import threading, time\ndef work():\n    time.sleep(0.05)\n    print('thread')\nthreading.Thread(target=work).start()\nprint('main')"
    ),
    "daemon threads": (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\nprint('main')"
    ),
    "busy daemon threads": (
        "import threading\ndef work():\n    while True: sum(range(100))\nfor _ in range(3):\n"
        "    threading.Thread(target=work, daemon=True).start()\nprint('main')"
    ),
    "thread pool": (
        "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(3) as pool:\n    print(list(pool.map(abs, [-1, -2])))"
    ),
    "file that is not closed": "file = open('written', 'w')\nfile.write('all of it')",
    "file that a module keeps": "import os\nos.kept = open('written', 'w')\nos.kept.write('all of it')",
    "file in a frame of the exception": "def function():\n    file = open('written', 'w')\n    file.write('x')\n    raise ValueError\nfunction()",
    "destructor of a global": "class Kind:\n    def __del__(self): print('del', __name__)\nkept = Kind()\nprint('main')",
    "destructor in a cycle": (
        "class Kind:\n    def __init__(self): self.me = self\n    def __del__(self): print('del')\nKind()\nprint('main')"
    ),
    "destructor in builtins": (
        "import builtins\nclass Kind:\n    def __del__(self): print('del')\nbuiltins.kept = Kind()\nprint('main')"
    ),
    "generator that is not finished": (
        "import sys\ndef numbers():\n    try:\n        yield 1\n    finally:\n        print('closed')\nsys.kept = numbers()\nprint(next(sys.kept))"
    ),
    "weak references": "import weakref\nclass Kind: pass\nkept = Kind()\nweakref.finalize(kept, print, 'finalized')\nprint('main')",
    "temporary folder": (
        "import tempfile, pathlib\nkept = tempfile.TemporaryDirectory(dir='.')\npathlib.Path('made').write_text(str(len(kept.name) > 1))"
    ),
    "another stdout": "import sys\nsys.stdout = open('written', 'w')\nprint('there')",
    "closed stdout": "import sys\nprint('a')\nsys.stdout.close()",
    "no stdout": "import sys\nsys.stdout = None\nprint('a')",
    "closed descriptor of stdout": "import os, sys\nos.close(1)\nprint('a')",
    "stdout in C": "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.printf(b'from C')\nprint('from Python')",
    "large output": "import sys\nsys.stdout.write('x' * 3_000_000)\nsys.stderr.write('y' * 20_000)",
    "bytes": "import sys\nsys.stdout.buffer.write(bytes(range(256)))",
    "unicode": "print('\N{SNOWMAN} \N{LATIN SMALL LETTER E WITH ACUTE}')",
    "module beside it": "import helper\nprint(helper.VALUE, helper.__name__, helper.__file__)",
    "module in a folder beside it": "from inner.deep import VALUE\nprint(VALUE)",
    "module of its own with a destructor": "import helper\nhelper.kept = helper.Kind()\nprint('main')",
    "relative import": "from . import helper",
    "module that is missing": "import no_such_module",
    "importing itself": "import hook_script\nprint(__name__, 'done')",
    "data beside it": "import pathlib\nprint(pathlib.Path(__file__).with_name('data.txt').read_text())",
    "no bytecode is left": "import helper, pathlib\nprint(sorted(each.name for each in pathlib.Path(__file__).parent.iterdir()))",
    "multiprocessing with fork": (
        "import multiprocessing\ndef work(number): return number * 2\nif __name__ == '__main__':\n"
        "    with multiprocessing.get_context('fork').Pool(2) as pool: print(pool.map(work, [1, 2, 3]))"
    ),
    "multiprocessing with spawn": (
        "import multiprocessing\ndef work(number): return number * 2\nif __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool: print(pool.map(work, [1, 2, 3]))"
    ),
    "fork": (
        "import os, sys\nprint('before', flush=True)\npid = os.fork()\nif pid == 0:\n    print('child')\n    sys.exit(3)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    ),
    "subprocess": "import subprocess\nprint(subprocess.run(['sh', '-c', 'echo $0 $GIVEN; exit 3'], capture_output=True))",
    "exec": "import os\nos.execvp('sh', ['sh', '-c', 'echo replaced; exit 6'])",
    "asyncio": "import asyncio\nasync def main():\n    await asyncio.sleep(0)\n    print('async')\nasyncio.run(main())",
    "monkeypatching": "import json, os\njson.dumps = lambda *_: 'patched'\nos.getcwd = None\nprint(json.dumps(1))",
    "what an earlier one patched is whole": "import json, os\nprint(json.dumps(1), os.getcwd is not None, hasattr(os, 'kept'))",
    "extension modules": "import decimal, zlib, sqlite3, _ctypes\nprint(zlib.crc32(b'x'), sqlite3.connect(':memory:').execute('select 1').fetchall())",
    "random numbers are seeded": "import random, uuid, secrets\nprint(len({random.random() for _ in range(9)}))",
    "logging": "import logging\nlogging.basicConfig(level=logging.INFO)\nlogging.info('said')\nlogging.getLogger('x').warning('warned')",
    "a memory limit": "try:\n    bytearray(3 * 2**30)\nexcept MemoryError:\n    print('no memory')",
    "runpy": "import runpy\nrunpy.run_path(__file__.replace('hook_script', 'helper'), run_name='__main__')",
    "pickle of main": "import pickle\nclass Kind: pass\nprint(type(pickle.loads(pickle.dumps(Kind()))) is Kind)",
    "dataclasses of main": "import dataclasses, typing\n@dataclasses.dataclass\nclass Kind:\n    a: 'int'\nprint(typing.get_type_hints(Kind))",
    "interactive names": "print(exit, quit, copyright.__class__.__name__)\nexit(2)",
    "process time begins with it": "import time\nprint(time.process_time() < 1)",
    "threads of the interpreter": "import threading\nprint([each.name for each in threading.enumerate()], threading.main_thread().native_id == __import__('os').getpid())",
    "collector": "import gc\nprint(gc.isenabled(), gc.get_threshold(), gc.garbage)",
}
