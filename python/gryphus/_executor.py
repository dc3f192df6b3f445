"""Functions as tasks of the pool: `concurrent.futures.Executor`."""

import atexit
import base64
import collections
import concurrent.futures
import os
import pickle
import pkgutil
import shutil
import struct
import sys
import tempfile
import threading
import weakref

from ._agent import Agent

try:
    import cloudpickle
except ImportError:
    cloudpickle = None

# A batch is as long as it takes to be worth starting a Python for it, in seconds, and has at most so many calls. Calls
# that take less together are not shared out among workers.
BATCH_SECONDS = 0.5
LEAST_SECONDS = 0.1
MOST_CALLS = 2000
# Bytes of a batch that are passed as arguments, and of one argument; more go through a file.
MOST_INLINE = 60000
# Batches that are given to the pool for each worker: some run, some wait.
AHEAD = 3


class PythonMismatch(Exception):
    """The Python where the functions run cannot unpickle them."""


class TaskDied(Exception):
    """The process that ran the function ended before it returned."""


class _RemoteTraceback(Exception):
    """The traceback as it was printed there; the cause of the exception here."""

    def __init__(self, text):
        super().__init__(text)
        self.text = text

    def __str__(self):
        return '\n"""\n%s"""' % self.text


class _Call:
    __slots__ = ("future", "body")

    def __init__(self, future, body):
        self.future = future
        self.body = body


class Executor(concurrent.futures.Executor):
    """Runs functions on the pool's workers.

    max_workers    the most batches that run at once; default: as many as there are slots
    cpus, memory   of each (memory in MB)
    anywhere       also on workers that do not share this machine's files, such as those of `gryphus glidein start`
    python         the program; default: this one, or python3 with `anywhere`
    requirements   a ClassAd expression: only workers for which it is true
    env            variables
    pickler        "cloudpickle" or "pickle"; default: cloudpickle if it is installed
    """

    def __init__(
        self,
        max_workers=None,
        *,
        agent=None,
        cpus=1,
        memory=None,
        anywhere=False,
        python=None,
        requirements=None,
        env=None,
        pickler=None,
    ):
        if pickler not in (None, "pickle", "cloudpickle"):
            raise ValueError("pickler: %r" % (pickler,))
        if pickler == "cloudpickle" and cloudpickle is None:
            raise ImportError("cloudpickle is not installed")
        self._cloudpickle = cloudpickle is not None and pickler != "pickle"
        self._anywhere = anywhere
        self._width = max_workers or os.cpu_count() or 1
        self._dir = tempfile.mkdtemp(prefix="gryphus-")
        self._own_agent = None if agent is not None else Agent()
        self._main = _main_file()
        path = {"PATH": os.environ.get("PATH", os.defpath)}
        self._map = (agent or self._own_agent).map(
            executable=python or ("python3" if anywhere else sys.executable),
            args=["-c", pkgutil.get_data(__package__, "_runner.py").decode()],
            cwd=self._dir if anywhere else os.getcwd(),
            anywhere=anywhere,
            cpus=cpus,
            memory=memory,
            requirements=requirements,
            atOnce=None if max_workers is None else max_workers * AHEAD,
            env={**path, **(env or {})},
        )
        self._pid = os.getpid()
        self._lock = threading.Condition()
        self._pending = collections.deque()
        self._batches = {}
        self._last = 0
        self._seconds = None
        self._shutdown = False
        self._broken = None
        self._refused = None
        self._feeder = threading.Thread(target=self._feed, name="gryphus-feeder", daemon=True)
        self._reader = threading.Thread(target=self._read, name="gryphus-reader", daemon=True)
        self._feeder.start()
        self._reader.start()
        _EXECUTORS.add(self)

    def submit(self, fn, /, *args, **kwargs):
        self._refuse_child()
        body = self._dumps((fn, args, kwargs))
        future = concurrent.futures.Future()
        with self._lock:
            if self._broken is not None:
                raise concurrent.futures.BrokenExecutor(str(self._broken))
            if self._shutdown:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._pending.append(_Call(future, body))
            # Waking the feeder for nothing costs more than the rest of this function.
            if self._can_send():
                self._lock.notify_all()
        return future

    def _refuse_child(self):
        if self._pid != os.getpid():
            raise RuntimeError(
                "this Executor belongs to process %d, and its threads are not in a forked child: make one in the child"
                % self._pid
            )

    def shutdown(self, wait=True, *, cancel_futures=False):
        if self._pid != os.getpid():
            # It belongs to the parent, which may hold the lock for ever here.
            return
        with self._lock:
            self._shutdown = True
            dropped = []
            if cancel_futures:
                dropped, self._pending = list(self._pending), collections.deque()
            self._lock.notify_all()
        for call in dropped:
            # Of a batch that was cut short, some calls count as running.
            if call.future.cancel():
                call.future.set_running_or_notify_cancel()
            else:
                call.future.set_exception(concurrent.futures.CancelledError())
        if wait and threading.current_thread() not in (self._feeder, self._reader):
            self._feeder.join()
            self._reader.join()

    def __exit__(self, kind, error, trace):
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self._withdraw()
        return super().__exit__(kind, error, trace)

    def _withdraw(self):
        """Ends what runs and takes back what waits: who interrupts a program does not want to wait for it."""
        with self._lock:
            self._shutdown = True
            self._refused = self._refused or concurrent.futures.CancelledError("interrupted")
        self._map.cancel()

    def _dumps(self, call):
        if self._cloudpickle:
            return cloudpickle.dumps(call, protocol=4)
        if getattr(call[0], "__module__", None) == "__main__" and (self._main is None or self._anywhere):
            raise pickle.PicklingError(
                "%r is defined in __main__, which is not there: install cloudpickle, or import it from a module"
                % (call[0],)
            )
        return pickle.dumps(call, protocol=4)

    def _feed(self):
        while True:
            with self._lock:
                while not self._broken and not self._can_send() and not self._finished():
                    self._lock.wait()
                if self._broken:
                    return
                if self._finished():
                    break
                calls = self._next()
            calls = [call for call in calls if self._starts(call)]
            try:
                if calls:
                    self._send(calls)
            except BaseException as error:
                self._refused = error
                self._map.cancel()
                return
        self._map.add([], last=True)

    def _can_send(self):
        """While every worker has a batch, calls wait until there is a whole one."""
        if len(self._batches) < self._width:
            return bool(self._pending)
        return len(self._batches) < self._width * AHEAD and len(self._pending) >= self._whole()

    def _finished(self):
        return self._shutdown and not self._pending and not self._batches

    def _next(self):
        """As many calls as make a batch of the right length, but some for every worker."""
        share = max(-(-len(self._pending) // self._width), self._calls_in(LEAST_SECONDS))
        return [self._pending.popleft() for _ in range(min(self._whole(), share, len(self._pending)))]

    def _whole(self):
        return min(self._calls_in(BATCH_SECONDS), MOST_CALLS)

    def _calls_in(self, seconds):
        return 1 if self._seconds is None else max(1, int(seconds / max(self._seconds, 1e-6)))

    @staticmethod
    def _starts(call):
        # A call of a batch that was cut short is running already.
        return call.future.running() or call.future.set_running_or_notify_cancel()

    def _send(self, calls):
        batch = {
            "version": list(sys.version_info[:2]),
            "cloudpickle": self._cloudpickle,
            "path": [place for place in sys.path if place] + ([] if self._anywhere else [os.getcwd()]),
            "main": None if self._cloudpickle or self._anywhere else self._main,
            "tasks": [call.body for call in calls],
        }
        body = pickle.dumps(batch, protocol=4)
        with self._lock:
            self._last += 1
            number = self._last
            self._batches[number] = calls
        task = {"of": number}
        if len(body) > MOST_INLINE:
            name = "batch-%d" % number
            with open(os.path.join(self._dir, name), "wb") as file:
                file.write(body)
            if self._anywhere:
                task.update(args=["f", name], inputs=[name])
            else:
                task.update(args=["f", os.path.join(self._dir, name)])
        else:
            task.update(args=["i", base64.b64encode(body).decode()])
        self._map.add([task])

    def _read(self):
        problem = None
        try:
            for answer in self._map:
                self._take(answer)
        except BaseException as error:
            problem = self._refused or error
        with self._lock:
            if problem is None and (self._batches or self._pending):
                problem = RuntimeError("the agent ended the map")
            self._broken = problem
            calls = [call for batch in self._batches.values() for call in batch] + list(self._pending)
            self._batches.clear()
            self._pending.clear()
            self._lock.notify_all()
        for call in calls:
            if self._starts(call):
                call.future.set_exception(problem)
        shutil.rmtree(self._dir, ignore_errors=True)
        if self._own_agent is not None:
            self._own_agent.close()

    def _take(self, answer):
        number = answer["of"]
        with self._lock:
            calls = self._batches.pop(number)
        stderr = base64.b64decode(answer["stderr"]).decode(errors="replace")
        if stderr:
            sys.stderr.write(stderr)
        left = self._settle(calls, base64.b64decode(answer["stdout"]), answer, stderr)
        try:
            os.unlink(os.path.join(self._dir, "batch-%d" % number))
        except OSError:
            pass
        with self._lock:
            self._pending.extendleft(reversed(left))
            self._lock.notify_all()

    def _settle(self, calls, frames, answer, stderr):
        """Gives the calls their results; returns those that were not begun, because one before them ended the process."""
        begun = settled = 0
        for letter, body in _frames(frames):
            if letter == b"M":
                for call in calls:
                    call.future.set_exception(PythonMismatch(body.decode()))
                return []
            if letter == b"B":
                begun += 1
            elif letter == b"R":
                self._resolve(calls[settled].future, body)
                settled += 1
            elif letter == b"E":
                each = struct.unpack(">d", body)[0] / len(calls)
                self._seconds = each if self._seconds is None else (self._seconds + each) / 2
        if settled == len(calls):
            return []
        died = TaskDied(_how(answer, stderr))
        # Nothing has begun if Python itself did not start.
        guilty = calls[settled:begun] if begun > 0 else calls
        for call in guilty:
            call.future.set_exception(died)
        return calls[begun:] if begun > 0 else []

    @staticmethod
    def _resolve(future, body):
        try:
            ok, value, text = pickle.loads(body)
        except BaseException as error:
            future.set_exception(error)
            return
        if ok:
            future.set_result(value)
            return
        value.__cause__ = _RemoteTraceback(text)
        future.set_exception(value)


def _frames(data):
    at = 0
    while at + 5 <= len(data):
        length, letter = struct.unpack_from(">Ic", data, at)
        at += 5
        if at + length > len(data):
            return
        yield letter, data[at : at + length]
        at += length


def _how(answer, stderr):
    how = answer["how"]
    if "problem" in answer:
        said = answer["problem"]
    elif how["kind"] == "exited":
        said = "exit status %d" % how["code"]
    elif how["kind"] == "signaled":
        said = "signal %d" % how["signal"]
    else:
        said = how.get("message", how["kind"])
    last = [line for line in stderr.splitlines() if line.strip()][-3:]
    return "the process of the function ended with %s%s" % (said, "".join("\n    " + line for line in last))


def _main_file():
    """The script that is being run; None if it is typed in."""
    main = sys.modules.get("__main__")
    if getattr(getattr(main, "__spec__", None), "name", None) is not None:
        return None
    path = getattr(main, "__file__", None)
    return os.path.abspath(path) if path else None


_EXECUTORS = weakref.WeakSet()


@atexit.register
def _finish():
    # What ended the program; where one types, it may be long ago.
    ended_by = None if hasattr(sys, "ps1") else getattr(sys, "last_type", None)
    interrupted = ended_by is not None and issubclass(ended_by, KeyboardInterrupt)
    for executor in list(_EXECUTORS):
        if interrupted and executor._pid == os.getpid():
            executor._withdraw()
        executor.shutdown()
