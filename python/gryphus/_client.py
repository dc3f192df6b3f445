"""The agent's socket: requests and answers in JSON, one on each line (docs/protocol.md)."""

import json
import os
import queue
import shutil
import socket
import subprocess
import threading

PROTOCOL = 1


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
    words = [program, "api"] + ([] if home is None else ["--home", os.path.abspath(home)])
    ran = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        said = ran.stderr.strip() or "exit status %d" % ran.returncode
        raise GryphusError("queue-unavailable", "gryphus api: %s" % said.removeprefix("gryphus: "))
    return ran.stdout.strip()


class Call:
    """A request that is under way. Iterating gives its events; `result()` waits for its end."""

    def __init__(self, client, number):
        self._client = client
        self.number = number
        self._answers = queue.SimpleQueue()
        self._ended = None

    def put(self, answer):
        self._answers.put(answer)

    def __iter__(self):
        return self

    def __next__(self):
        if self._ended is not None:
            raise StopIteration
        answer = self._answers.get()
        if "event" in answer:
            return answer["event"]
        self._ended = answer
        if "error" in answer:
            raise error_of(answer["error"])
        raise StopIteration

    def result(self):
        for _ in self:
            pass
        return self._ended.get("result")

    def cancel(self):
        self._client.send({"id": self.number, "cancel": True})

    def send(self, **more):
        self._client.send({"id": self.number, **more})


def error_of(error):
    return GryphusError(error.get("code", "internal"), error.get("message", ""), error.get("suggestions", ()))


class Client:
    """A connection. Its methods may be called from several threads."""

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(path)
        except OSError as problem:
            self._socket.close()
            raise GryphusError("queue-unavailable", "%s: %s" % (path, problem.strerror)) from problem
        self._file = self._socket.makefile("rb")
        self._writing = threading.Lock()
        self._calls = {}
        self._last = 0
        self._lost = None
        hello = json.loads(self._file.readline() or b"{}")
        if hello.get("protocol") != PROTOCOL:
            self.close()
            raise GryphusError(
                "protocol-error",
                "The agent speaks version %s of the protocol, and this module version %d."
                % (hello.get("protocol"), PROTOCOL),
                ["Install the module that belongs to this version of Gryphus."],
            )
        self.version = hello.get("gryphus")
        threading.Thread(target=self._read, name="gryphus", daemon=True).start()

    @property
    def lost(self):
        """Whether the connection has ended."""
        return self._lost is not None

    def call(self, method, **params):
        with self._writing:
            if self._lost is not None:
                raise error_of(self._lost)
            self._last += 1
            call = self._calls[self._last] = Call(self, self._last)
        given = {name: value for name, value in params.items() if value is not None}
        self.send({"id": call.number, "method": method, "params": given})
        return call

    def send(self, value):
        line = json.dumps(value, separators=(",", ":")).encode() + b"\n"
        with self._writing:
            try:
                self._socket.sendall(line)
            except OSError:
                # The reader reports it to all calls.
                pass

    def close(self):
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._socket.close()

    def _read(self):
        try:
            for line in self._file:
                answer = json.loads(line)
                call = self._calls.get(answer.get("id"))
                if call is None:
                    continue
                if "event" not in answer:
                    del self._calls[call.number]
                call.put(answer)
        except (OSError, ValueError):
            pass
        lost = {"code": "queue-unavailable", "message": "The connection to the agent has ended."}
        with self._writing:
            self._lost = lost
            calls, self._calls = self._calls, {}
        for call in calls.values():
            call.put({"error": lost})
