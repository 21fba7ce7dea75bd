"""``textmill``, and a Python for it, that have their imports behind them: 0.13 s to start, not 2.2.

One process a session imports everything and forks for each command. The command has a process,
arguments, folder, environment, input and output of its own, as a person's has; only what is
imported when is not as at a cold start, which tests/cli and a page of docs look at.
"""

import atexit
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

# A program of the folder: it hands its words, folder, environment and open files to the server, and
# SIGINT and SIGTERM to the command.
PROGRAM = """#!{python} -IS
import marshal, os, signal, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
job = marshal.dumps((sys.argv, os.getcwd(), dict(os.environb)))
socket.send_fds(server, [len(job).to_bytes(8, "little")], [0, 1, 2])
server.sendall(job)
command = int(server.recv(8))
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, frame: os.kill(command, number))
code = int(server.recv(16) or b"-9")
sys.exit(code if code >= 0 else 128 - code)  # as bash says it
"""

# A keeper for each command tells the program how it ended, and kills it with all it started where
# the program is gone. The server ends when its input does. PYTHONWARNINGS is read where Python
# starts, and names single modules: so the filter is set here, and textmill's use of what others
# have deprecated fails a page. The cold page does without.
SERVER = """
import atexit, contextlib, gc, io, marshal, os, runpy, select, signal, socket, sys, threading
import traceback, types, warnings
import pydantic, sacrebleu, sentencepiece, sklearn.svm, tokenizers, torch
pydantic.TypeAdapter  # it is imported when it is asked for
import transformers.models.t5.modeling_t5
import textmill.preflight.check, textmill.runs.report.reporter, textmill.runs.train
import textmill.inference.load, textmill.recipes.corpus.data
import textmill.recipes.experiments.generation
import httpx, textmill.serving.app, textmill.serving.server
from textmill.cli.main import main

def jobs(address):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    os.write(1, b"ready\\n")
    while sys.stdin not in (ready := select.select([listener, sys.stdin], [], [], 1.0)[0]):
        while children and (ended := os.waitpid(-1, os.WNOHANG)[0]):
            children.discard(ended)
        if ready:
            program, _ = listener.accept()
            if keeper := os.fork():
                children.add(keeper)
                program.close()
                continue
            listener.close()
            return program
    sys.exit()

def kill_when_gone(program, command):
    if not program.recv(1):  # it sends nothing: it was killed
        os.killpg(command, signal.SIGKILL)

def take(program):
    size, files, _, _ = socket.recv_fds(program, 8, 3)
    job = b""
    while len(job) < int.from_bytes(size, "little"):
        job += program.recv(1 << 20)
    command = os.fork()
    os.setpgid(command, command)  # of both, as either may be first
    if command:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program hands it to the command
        threading.Thread(target=kill_when_gone, args=(program, command), daemon=True).start()
        with contextlib.suppress(OSError):
            program.sendall(b"%8d" % command)
        os.closerange(0, 3)
        for file in files:
            os.close(file)
        status = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
        try:
            program.sendall(str(status).encode())
        finally:
            os._exit(0)
    program.close()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where nohup runs the tests
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    words, folder, environment = marshal.loads(job)
    os.chdir(folder)
    os.environ.clear()
    os.environb.update(environment)
    sys.argv = [os.path.basename(words[0]), *words[1:]]
    through = bool(os.environ.get("PYTHONUNBUFFERED"))
    sys.stdin = open(0, closefd=False)
    for name, number in ("stdout", 1), ("stderr", 2):
        file = open(number, "wb", 0 if through else -1, closefd=False)
        lines = number == 2 or file.isatty()
        setattr(sys, name, io.TextIOWrapper(file, line_buffering=lines, write_through=through))
    sys.path[0] = os.path.dirname(sys.executable)  # as for any program there

def python():
    # What follows the program's name is that of Python: -c CODE, -m MODULE or a file.
    words = sys.argv[1:]
    kind = words.pop(0) if words[0] in ("-c", "-m") else "file"
    what, sys.argv = words[0], ["-c" if kind == "-c" else words[0], *words[1:]]
    start = {"-c": "", "-m": os.getcwd(), "file": os.path.dirname(os.path.abspath(what))}[kind]
    given = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.path[:] = dict.fromkeys([start, *given, *sys.path[1:]])
    try:
        if kind == "-c":
            sys.modules["__main__"] = types.ModuleType("__main__")
            exec(compile(what, "<string>", "exec"), vars(sys.modules["__main__"]))
        elif kind == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(what, run_name="__main__")
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        return ended.code if isinstance(ended.code, int) else int(bool(ended.code))
    return 0

children = set()
warnings.filterwarnings("error", category=DeprecationWarning, module=r"textmill(\\.|$)")
gc.freeze()  # a collection of garbage would copy all that is shared
take(jobs(sys.argv[1]))
code = 1
try:
    code = main() if sys.argv[0] == "textmill" else python()
except BaseException:
    traceback.print_exc()
threading._shutdown()
atexit._run_exitfuncs()
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)  # to take all modules apart would copy them first
"""


@cache
def warm_programs() -> Path:
    """The folder with ``textmill`` and ``warm-python``; their server runs until this process ends.

    ``python``, ``warm-python`` as well, is for code that imports textmill in a process of its own,
    where what that takes is not what is tested.
    """
    folder = Path(mkdtemp(prefix="textmill-"))  # a socket's path has room for 100 characters
    address = str(folder / "server")
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},  # a process with threads must not fork
    )
    assert server.stdout
    assert server.stdin
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.wait)
    atexit.register(server.stdin.close)
    for name in ("textmill", "warm-python", "python"):
        (folder / name).write_text(PROGRAM.format(python=sys.executable, address=address))
        (folder / name).chmod(0o755)
    assert server.stdout.readline() == b"ready\n"
    server.stdout.close()
    return folder
