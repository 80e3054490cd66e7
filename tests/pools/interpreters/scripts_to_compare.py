# ruff: noqa: E501 - most scripts are one line
"""Scripts whose outputs, exit status and files must be equal in cold runs (in a new process) and in warm runs (in a forked
worker).
"""

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
    "faulthandler": (
        "import faulthandler, os, sys\nprint(faulthandler.is_enabled(), flush=True)\nfaulthandler.enable()\n"
        "os.kill(os.getpid(), 11)"
    ),
    "a traceback that the faulthandler dumps": (
        "import faulthandler\ndef inner():\n    faulthandler.dump_traceback(all_threads=True)\ninner()"
    ),
    "umask of files": "import os\nos.close(os.open('written', os.O_CREAT | os.O_WRONLY, 0o666))\nprint(oct(os.stat('written').st_mode))",
    "signals of a child": (
        "import subprocess\nprint(subprocess.run(['grep', '^SigBlk\\|^SigIgn', '/proc/self/status'], capture_output=True, text=True).stdout)"
    ),
    "SIGPIPE in a pipeline": (
        "import subprocess\nprint(subprocess.run(['sh', '-c', 'yes | head -1; echo ${PIPESTATUS-none}'], capture_output=True, text=True))"
    ),
    "SIGPIPE by default": (
        "import os, signal\nsignal.signal(signal.SIGPIPE, signal.SIG_DFL)\nr, w = os.pipe()\nos.close(r)\nos.write(w, b'x')\nprint('never')"
    ),
    "SIGHUP and SIGUSR1 by default": "import os, signal\nprint('x', flush=True)\nos.kill(os.getpid(), signal.SIGUSR1)",
    "an alarm": "import signal, time\nsignal.alarm(1)\nprint('x', flush=True)\ntime.sleep(60)",
    "blocked signals": (
        "import os, signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\nos.kill(os.getpid(), signal.SIGTERM)\n"
        "print(signal.sigpending())"
    ),
    "no children, and none to wait for": (
        "import os\ntry:\n    os.waitpid(-1, os.WNOHANG)\nexcept ChildProcessError as error:\n    print(error)"
    ),
    "nested forks": (
        "import os, sys\ndef down(level):\n    if level and os.fork() == 0:\n        down(level - 1)\n        sys.stdout.flush()\n        os._exit(level)\n"
        "    if level: print(level, os.waitstatus_to_exitcode(os.wait()[1]))\ndown(3)"
    ),
    "a fork that ends as main does": (
        "import atexit, os, sys\natexit.register(print, 'end')\nsys.stdout.flush()\nif os.fork() == 0:\n    raise ValueError('in the child')\n"
        "print(os.waitstatus_to_exitcode(os.wait()[1]))"
    ),
    "functions at a fork": (
        "import os\nos.register_at_fork(before=lambda: print('before', flush=True), after_in_child=lambda: print('child', flush=True))\n"
        "if os.fork() == 0: os._exit(0)\nos.wait()"
    ),
    "a pool of processes and a class of main": (
        "import concurrent.futures, multiprocessing\nclass Kind:\n    def __init__(self, number): self.number = number\n"
        "def double(kind): return Kind(kind.number * 2)\nif __name__ == '__main__':\n"
        "    with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context('spawn')) as pool:\n"
        "        found = list(pool.map(double, [Kind(1), Kind(2)]))\n    print([each.number for each in found], type(found[0]) is Kind)"
    ),
    "a manager of multiprocessing": (
        "import multiprocessing\nif __name__ == '__main__':\n    with multiprocessing.get_context('fork').Manager() as manager:\n"
        "        kept = manager.dict(a=1)\n        print(dict(kept))"
    ),
    "itself by exec": (
        "import os, sys\nprint(len(sys.argv), flush=True)\nif len(sys.argv) < 5:\n    os.execv(sys.executable, [sys.executable, *sys.argv, 'more'])"
    ),
    "itself as a child": (
        "import subprocess, sys\nif 'child' in sys.argv:\n    print(sys.argv[1:], __name__)\nelse:\n"
        "    print(subprocess.run([sys.executable, __file__, 'child'], capture_output=True, text=True).stdout)"
    ),
    "source of main": "import inspect\ndef function():\n    return 1\nprint(inspect.getsource(function), inspect.getfile(function))",
    "frames": "import sys, traceback\ndef function():\n    print(len(traceback.extract_stack()) - len(traceback.extract_stack(sys._getframe(1))))\nfunction()",
    "traceback of an import": "import pathlib\npathlib.Path(__file__).with_name('data.txt')\nimport inner.none",
    "traceback of a compiled text": "exec(compile('\\n\\nraise ValueError(1)', '<text>', 'exec'))",
    "settrace": "import sys\nseen = []\nsys.settrace(lambda frame, event, _: seen.append(event))\ndef function(): pass\nfunction()\nsys.settrace(None)\nprint(seen)",
    "encodings": (
        "import locale, sys\nprint(sys.getfilesystemencoding(), sys.getfilesystemencodeerrors(), sys.getdefaultencoding(),\n"
        "    locale.getpreferredencoding(False), locale.setlocale(locale.LC_ALL), locale.getlocale())\nprint(open(__file__).encoding)"
    ),
    "the locale of its own": "import locale\nlocale.setlocale(locale.LC_ALL, '')\nprint(locale.format_string('%d', 12345, grouping=True), locale.strxfrm('x'))",
    "hashes of text": "print(hash('text'), hash(b'bytes'), list({'a', 'b', 'c', 'd', 'e'}))",
    "numbers of a seed": "import random\nrandom.seed(5)\nprint(random.random(), random.Random(5).random())",
    "filters of warnings": "import sys, warnings\nprint(warnings.filters, sys.warnoptions)\nwarnings.simplefilter('error')\nwarnings.warn('now')",
    "a warning is shown once": "import warnings\nfor _ in range(3): warnings.warn('once')\nwarnings.warn('resource', ResourceWarning)",
    "limits that it sets": (
        "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))\ntry:\n    kept = [open('/dev/null') for _ in range(30)]\n"
        "except OSError as error:\n    print(error)"
    ),
    "a limit of processor time": "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nwhile True: pass",
    "the stack": "import sys, threading\nprint(sys.getrecursionlimit(), threading.stack_size(), sys.getswitchinterval())",
    "descriptors of a child": "import subprocess\nprint(subprocess.run(['ls', '/proc/self/fd'], capture_output=True, text=True).stdout)",
    "a closed stdin": "import os, sys\nos.close(0)\nprint(open('/dev/null').fileno())\ntry:\n    sys.stdin.read()\nexcept OSError as error:\n    print(error)",
    "modules of main": "import sys\nprint('__main__' in sys.modules, sys.modules['__main__'].__file__, [n for n in sys.modules if 'zygote' in n or 'wharfinger' in n])",
    "names of the site": "import builtins\nprint(sorted(name for name in dir(builtins) if not name.startswith('__')))",
    "the path hooks": "import sys\nprint(sys.path_hooks, sys.meta_path, sys.dont_write_bytecode, sys.pycache_prefix, sys.ps1 if hasattr(sys, 'ps1') else None)",
    "a name of the process": "import os\nprint(open('/proc/self/comm').read(), os.getpgid(0) == os.getpid(), os.getppid() > 1)",
    "exit in atexit": "import atexit, sys\ndef end(): sys.exit(5)\natexit.register(end)\nprint('main')",
    "os._exit in a thread": "import os, threading, time\nprint('x', flush=True)\nthreading.Thread(target=os._exit, args=(6,)).start()\ntime.sleep(60)",
    "imports in a destructor": "class Kind:\n    def __del__(self):\n        import tarfile\nkept = Kind()\nprint('main')",
    "an exception in a destructor": "class Kind:\n    def __del__(self): 1 / 0\nkept = Kind()\nprint('main')",
    "unraisable and excepthook of threads": (
        "import sys, threading\nthreading.excepthook = lambda args: print('hook', args.exc_type.__name__)\n"
        "sys.unraisablehook = lambda args: print('unraisable', type(args.exc_value).__name__)\n"
        "thread = threading.Thread(target=lambda: 1 / 0)\nthread.start()\nthread.join()\n"
        "class Kind:\n    def __del__(self): 1 / 0\nKind()"
    ),
    "a module of its own that shadows nothing": "import sys\nsys.path.insert(0, 'nowhere')\nimport helper\nprint(sys.modules['helper'] is helper)",
    "context variables and async generators": (
        "import asyncio, contextvars\nvalue = contextvars.ContextVar('value', default=1)\nasync def numbers():\n    try:\n        yield 1\n"
        "    finally:\n        print('closed', value.get())\nasync def main():\n    async for number in numbers():\n        break\nasyncio.run(main())"
    ),
    "sqlite and shared memory": (
        "import multiprocessing.shared_memory as shared\nkept = shared.SharedMemory(create=True, size=10)\nkept.buf[0] = 7\nprint(kept.buf[0])\n"
        "kept.close()\nkept.unlink()"
    ),
    "OpenSSL": (
        "import hashlib, hmac, ssl\nprint(hashlib.sha256(b'x').hexdigest(), hmac.new(b'k', b'x', 'sha512').hexdigest())\n"
        "print(hashlib.scrypt(b'x', salt=b'y', n=2, r=1, p=1).hex(), sorted(hashlib.algorithms_available))\n"
        "print(ssl.OPENSSL_VERSION, ssl.create_default_context().verify_mode, ssl.RAND_status())"
    ),
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
