"""A client of Chirp for running jobs with want_io_proxy = true: files of the submit directory, by their relative paths."""

import os
import socket

MISSING = -3


class ChirpError(OSError):
    """`code`: Chirp's number of the error, negative."""

    def __init__(self, request, code):
        super().__init__("%s: Chirp error %d" % (request, code))
        self.code = code


class Chirp:
    def __init__(self, config=None):
        # A job that was restarted elsewhere finds the file in its directory.
        path = config or os.environ.get("_CONDOR_CHIRP_CONFIG", ".chirp.config")
        with open(path if os.path.exists(path) else ".chirp.config") as file:
            host, port, cookie = file.read().split()[:3]
        self.stream = socket.create_connection((host.replace("host:", ""), int(port))).makefile("rwb")
        self.ask("cookie", cookie)

    def ask(self, verb, *words, data=b""):
        """Sends a request; returns its result, or raises ChirpError."""
        line = " ".join([verb] + [escaped(str(word)) for word in words])
        self.stream.write(line.encode() + b"\n" + data)
        self.stream.flush()
        return self.result(verb)

    def result(self, verb):
        result = int(self.stream.readline())
        if result < 0:
            raise ChirpError(verb, result)
        return result

    def read(self, path):
        return self.stream.read(self.ask("getfile", path))

    def names(self, directory):
        # An empty line ends the list.
        return self.stream.read(self.ask("getdir", directory)).decode().splitlines()[:-1]

    def write(self, path, content):
        """Replaces a file: others see the old content or the new one."""
        self.ask("putfile", path + ".new", 0o644, len(content))
        self.stream.write(content)
        self.stream.flush()
        self.result("putfile")
        self.rename(path + ".new", path)

    def rename(self, old, new):
        self.ask("rename", old, new)


def escaped(word):
    return "".join("\\" + c if c in " \n\r\t\\" else c for c in word)
