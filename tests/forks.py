"""A process that has imported the command line and forks for every command of a test.

The start of an interpreter takes a tenth of a second of processor time, and the tests run some
thousands of commands. A fork has the same memory, file limits and signals as a process that has
just started, and some more modules. Tests of the start itself, of Ctrl-C and of hard limits start
processes of their own.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

#: File descriptors of standard output and error.
_OUTPUT = (1, 2)
_LARGEST = 1 << 20
#: Modules that most commands import.
_MODULES = (
    "brimful.cli.app",
    "brimful.cli.export_verb",
    "brimful.cli.import_verb",
    "brimful.cli.run_verb",
    "brimful.importing",
    "brimful.planning",
)
#: Modules that many commands import, in a quarter of a second.
_LARGE_MODULES = ("numpy", "pyarrow.parquet")
#: Modules that draw the figures of a report; their import takes more than a second.
_DRAWING_MODULES = ("jinja2", "matplotlib.figure", "matplotlib.backends.backend_svg")


def modules_of(words: Sequence[str]) -> tuple[str, ...]:
    """Return the modules that a command finds imported.

    Commands with a budget begin without large ones: the memory that a process takes before it
    begins is a part of its budget.
    """
    if "--budget" in words:
        return _MODULES
    draws = "--report" in words or "--html" in words
    return _MODULES + _LARGE_MODULES + (_DRAWING_MODULES if draws else ())


class Forks:
    """The client of a server, which serves a process of tests."""

    def __init__(self, modules: Sequence[str]) -> None:
        """Start a server that has imported some modules."""
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, __file__, str(theirs.fileno()), *modules]
        self._server = subprocess.Popen(command, pass_fds=[theirs.fileno()])
        theirs.close()

    def run(
        self,
        words: list[str],
        cwd: Path | None,
        env: dict[str, str],
        output: tuple[int, int],
        timeout: float,
    ) -> int:
        """Run a command without input; `output` are its standard output and error.

        Returns:
            The exit code, or minus the number of the signal that ended it.

        Raises:
            subprocess.TimeoutExpired: It took too long, and was killed.
        """
        answers, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        request = {"words": words, "cwd": str(cwd or os.getcwd()), "env": env}
        with theirs:
            fds = [theirs.fileno(), *output]
            socket.send_fds(self._requests, [json.dumps(request).encode()], fds)
        with answers:
            command = int(answers.recv(_LARGEST))
            answers.settimeout(timeout)
            try:
                return int(answers.recv(_LARGEST))
            except TimeoutError:
                os.kill(command, signal.SIGKILL)
                raise subprocess.TimeoutExpired(words, timeout) from None


def _serve(requests: socket.socket) -> None:
    # Whoever attends to a command is reaped by the system.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        text, fds, _, _ = socket.recv_fds(requests, _LARGEST, 1 + len(_OUTPUT))
        if not text:
            return
        if os.fork() == 0:
            requests.close()
            _attend(json.loads(text), *fds)
        for fd in fds:
            os.close(fd)


def _attend(request: dict[str, Any], answers: int, *output: int) -> None:
    """Fork the command, tell its process id and its exit code, and end."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    command = os.fork()
    if command == 0:
        os.close(answers)
        _become(request, output)
    for fd in output:
        os.close(fd)
    os.write(answers, b"%d" % command)
    _, status = os.waitpid(command, 0)
    os.write(answers, b"%d" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _become(request: dict[str, Any], output: tuple[int, ...]) -> None:
    """Run the command line as a process of its own does."""
    for number, fd in zip(_OUTPUT, output, strict=True):
        os.dup2(fd, number)
        os.close(fd)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    from brimful.cli import main

    sys.argv = ["brimful", *request["words"]]
    code = main()
    # The end of an interpreter, without its last part: freeing all objects takes 30 ms.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    for name in sys.argv[2:]:
        importlib.import_module(name)
    # Collections of garbage in a fork do not touch, and so copy, these objects.
    gc.freeze()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    _serve(socket.socket(fileno=int(sys.argv[1])))
