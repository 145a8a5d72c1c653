"""Work in a forked process, whose memory goes with it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
import warnings
from collections.abc import Callable

#: A child that waits for a lock which a thread of a library held at the fork would wait for ever.
_MOST_SECONDS = 60


def is_possible() -> bool:
    """Return whether a child would have all threads that may work in this process.

    The threads of Ray are not Python's, and work all the time.
    """
    return sys.platform == "linux" and threading.active_count() == 1 and "ray" not in sys.modules


def in_child(work: Callable[[], object]) -> None:
    """Do work that leaves a file in a forked process, and wait for its end.

    If it fails, there is no file: the caller does the work itself, and meets the error there.
    """
    # The child alone holds the other end, so that its end can be read.
    ended, held = os.pipe()
    try:
        with warnings.catch_warnings():
            # Threads of libraries, such as those of NumPy, are idle.
            warnings.simplefilter("ignore", DeprecationWarning)
            process = os.fork()
    except OSError:
        os.close(held)
        os.close(ended)
        return
    if process == 0:
        try:
            work()
        finally:
            # No error is shown twice, and the objects of the parent are not finalized here.
            os._exit(0)
    os.close(held)
    poll = select.poll()
    poll.register(ended)
    try:
        poll.poll(_MOST_SECONDS * 1000)
    finally:
        os.close(ended)
        # Where SIGCHLD is ignored, the system does not keep an ended child.
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
