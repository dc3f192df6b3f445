"""The agent's HTTP interface at its unix socket (docs/protocol.md)."""

import http.client
import json
import os
import shutil
import socket
import subprocess
import threading

# The version of the interface is in its path.
BASE = "/api/v1"
# Connections that are kept for the next request.
MOST_IDLE = 8


class GryphusError(Exception):
    """What the agent refused, or why it cannot be asked. `code` is one of a closed list, such as 'bad-input'."""

    def __init__(self, code, message, suggestions=()):
        super().__init__(message)
        self.code = code
        self.suggestions = tuple(suggestions)

    def __str__(self):
        return "\n  -> ".join([super().__str__(), *self.suggestions])


def find_socket(home=None, program=None):
    """The path of the agent's socket; `gryphus api` starts its server if none runs."""
    program = program or os.environ.get("GRYPHUS") or shutil.which("gryphus")
    if program is None:
        raise GryphusError("missing-program", "The command gryphus is not in the PATH.", ["Set $GRYPHUS to its path."])
    words = [program, "api", "--json"] + ([] if home is None else ["--home", os.path.abspath(home)])
    ran = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        said = ran.stderr.strip() or "exit status %d" % ran.returncode
        raise GryphusError("queue-unavailable", "gryphus api: %s" % said.removeprefix("gryphus: "))
    found = json.loads(ran.stdout)
    if found.get("base") != BASE:
        raise GryphusError(
            "protocol-error",
            "Gryphus %s has no interface %s, which this module uses." % (found.get("gryphus"), BASE),
            ["Install the module that belongs to this version of Gryphus."],
        )
    return found["socket"]


def error_of(error):
    return GryphusError(error.get("code", "internal"), error.get("message", ""), error.get("suggestions", ()))


def _lost(problem=None):
    said = "" if problem is None else " (%s)" % (getattr(problem, "strerror", None) or problem)
    return GryphusError("queue-unavailable", "The connection to the agent has ended%s." % said)


class _Connection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    # A connection that has ended is not opened again unseen: what was sent may have been done.
    auto_open = 0

    def __init__(self, path):
        super().__init__("gryphus")
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        try:
            self.sock.connect(self._path)
        except OSError:
            self.close()
            raise

    def alive(self):
        """Whether the server has not closed it; nothing is ever there to be read between two answers."""
        try:
            self.sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def cut(self):
        """Ends it, also while another thread reads."""
        sock = self.sock
        if sock is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.close()


class Client:
    """Requests to the agent. Its methods may be called from several threads: each request has a connection of its own."""

    def __init__(self, home=None, program=None):
        self._home = home
        self._program = program
        self._lock = threading.Lock()
        self._path = None
        self._idle = []
        self._used = set()
        self._pid = os.getpid()

    def ask(self, method, path, body=None):
        """The answer to a request."""
        connection = self._take()
        try:
            response = self._send(connection, method, path, body)
            answer = response.read()
        except BaseException as problem:
            self._drop(connection)
            if isinstance(problem, (OSError, http.client.HTTPException)):
                raise _lost(problem) from problem
            raise
        self._give(connection)
        if response.status >= 400:
            raise error_of(json.loads(answer))
        return json.loads(answer)

    def stream(self, method, path, body=None):
        """A request whose answer is a stream of items."""
        return Stream(self, self._take(), method, path, body)

    def close(self):
        with self._lock:
            connections = [*self._idle, *self._used]
            self._idle = []
        for connection in connections:
            connection.cut()

    def _send(self, connection, method, path, body):
        data = None
        if method == "POST":
            given = {name: value for name, value in (body or {}).items() if value is not None}
            data = json.dumps(given, separators=(",", ":")).encode()
        try:
            connection.request(method, BASE + path, data, {} if data is None else {"Content-Type": "application/json"})
        except (BrokenPipeError, ConnectionResetError):
            # The server may have refused a long body and closed: it says why.
            pass
        return connection.getresponse()

    def _take(self):
        with self._lock:
            if self._pid != os.getpid():
                # After a fork, these are the parent's.
                self._pid, self._idle, self._used = os.getpid(), [], set()
            while self._idle:
                connection = self._idle.pop()
                if connection.alive():
                    self._used.add(connection)
                    return connection
                connection.close()
        return self._open()

    def _open(self):
        with self._lock:
            path = self._path
            for find in (path is None, True):
                if find:
                    path = self._path = find_socket(self._home, self._program)
                connection = _Connection(path)
                try:
                    connection.connect()
                except OSError as problem:
                    # The server may have ended since its socket was found.
                    if find:
                        raise GryphusError("queue-unavailable", "%s: %s" % (path, problem.strerror)) from problem
                    continue
                self._used.add(connection)
                return connection

    def _give(self, connection):
        with self._lock:
            self._used.discard(connection)
            if connection.sock is not None and len(self._idle) < MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def _drop(self, connection):
        with self._lock:
            self._used.discard(connection)
        connection.cut()


class Stream:
    """The items of an answer, as they come. `cancel()` ends the request, from any thread."""

    def __init__(self, client, connection, method, path, body):
        self._client = client
        self._connection = connection
        self._request = (method, path, body)
        self._items = None

    def begin(self):
        """Waits until the answer has begun: from then on the server does what was asked."""
        if self._items is None:
            self._items = self._read()
            next(self._items)
        return self

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.begin()._items)

    def cancel(self):
        self._client._drop(self._connection)

    def _read(self):
        done = False
        try:
            response = self._client._send(self._connection, *self._request)
            if response.status >= 400:
                error = json.loads(response.read())
                done = True
                raise error_of(error)
            yield
            for line in lines_of(response.read1):
                if "item" in line:
                    yield line["item"]
                    continue
                response.read()
                done = True
                if "error" in line:
                    raise error_of(line["error"])
                return
            raise _lost()
        except (OSError, http.client.HTTPException, ValueError, AttributeError) as problem:
            # A connection that another thread ends fails in any of these ways.
            raise _lost(problem) from problem
        finally:
            if done:
                self._client._give(self._connection)
            else:
                self._client._drop(self._connection)


def lines_of(read):
    """The values of a stream of JSON, one on each line; `read()` gives some bytes, and none at the end."""
    held = []
    while True:
        some = read()
        if not some:
            return
        if b"\n" not in some:
            held.append(some)
            continue
        *whole, rest = (b"".join(held) + some).split(b"\n")
        held = [rest]
        for line in whole:
            yield json.loads(line)
