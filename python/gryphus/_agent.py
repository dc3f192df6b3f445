"""An agent: submit, look, wait, act."""

import os
import threading

from ._client import Client, find_socket

STATUS = {1: "idle", 2: "running", 3: "removed", 4: "completed", 5: "held", 6: "transferring output", 7: "suspended"}


class Job(dict):
    """A job's attributes, as they were when it was asked for: `job["ExitCode"]`, HTCondor's names."""

    agent = None

    @property
    def id(self):
        """Such as "12.3"."""
        return "%d.%d" % (self["ClusterId"], self["ProcId"])

    @property
    def status(self):
        """idle, running, held, completed, removed, suspended, transferring output."""
        return STATUS.get(self.get("JobStatus"), "unknown")

    @property
    def exit_status(self):
        """As in a shell (128 + n for signal n); None if the job has none."""
        if self.get("JobStatus") != 4:
            return None
        if self.get("ExitBySignal") is True:
            return 128 + self["ExitSignal"]
        return self.get("ExitCode")

    def wait(self, timeout=None, until="end"):
        return self.agent.wait(self.id, timeout=timeout, until=until)

    def remove(self, reason=None):
        return self.agent.act("remove", self.id, reason=reason)

    def __repr__(self):
        return "<Job %s %s>" % (self.id, self.status)


class Event(dict):
    """A change of the queue: `event["type"]`, and `event.cursor`, from which `events` goes on."""

    cursor = ""


class Submitted:
    """The jobs of one submit."""

    def __init__(self, agent, answer):
        self.agent = agent
        self.cluster = answer["cluster"]
        self.total = answer["total"]
        self.warnings = [one["message"] for one in answer["warnings"]]

    def jobs(self, attributes=None):
        """The jobs, in the queue and in the history, in the order of their ids."""
        found = self.agent.jobs(self.cluster, where="both", attributes=attributes)
        return sorted(found, key=lambda job: job["ProcId"])

    def wait(self, timeout=None, until="end"):
        return self.agent.wait(self.cluster, timeout=timeout, until=until)

    def remove(self, reason=None):
        return self.agent.act("remove", self.cluster, reason=reason)

    def retry(self):
        return self.agent.retry(self.cluster)

    def __repr__(self):
        return "<Submitted %d: %d jobs>" % (self.cluster, self.total)


def selection(words):
    """12 or "12": a cluster; "12.3" or a Job: a job; a Submitted: its jobs; other words: a user."""
    chosen = {}
    for word in words:
        if isinstance(word, Job):
            chosen.setdefault("jobs", []).append(word.id)
        elif isinstance(word, Submitted):
            chosen.setdefault("clusters", []).append(word.cluster)
        elif isinstance(word, int) or word.isdigit():
            chosen.setdefault("clusters", []).append(int(word))
        elif word.replace(".", "", 1).isdigit():
            chosen.setdefault("jobs", []).append(word)
        elif "owner" in chosen:
            raise ValueError("one user at a time: %r" % word)
        else:
            chosen["owner"] = word
    return chosen


class Agent:
    """The agent of this user, or of another `home`. Connects when it is first used, and again after a lost connection."""

    def __init__(self, home=None, program=None):
        self._home = home
        self._program = program
        self._client = None
        self._lock = threading.Lock()

    def _call(self, method, **params):
        with self._lock:
            if self._client is None or self._client.lost:
                self._client = Client(find_socket(self._home, self._program))
            client = self._client
        return client.call(method, **params)

    def submit(self, command=None, *, description=None, cwd=None, name=None, **options):
        """Submits a job; returns when it is on disk and will run, once, whatever happens.

        `command`: the program and its arguments, as a list. A relative program with a slash is a file here, and is sent.
        Options: site, queue, cpus, memory, gpus, seconds, env, input, output (lists of files), stdin, stdout, stderr.
        `description`: the text of a submit file instead, in HTCondor's language.
        """
        where = os.path.abspath(cwd or os.getcwd())
        if (command is None) == (description is None):
            raise TypeError("submit needs a command or a description")
        if description is not None:
            if options:
                raise TypeError("with a description, these belong into its text: %s" % ", ".join(options))
            call = self._call("submit", description=description, cwd=where, name=name)
        else:
            if isinstance(command, str):
                raise TypeError("the command is a list of words: ['sh', '-c', %r]" % command)
            words = [os.fspath(word) if hasattr(word, "__fspath__") else str(word) for word in command]
            for key in ("input", "output"):
                if options.get(key) is not None:
                    options[key] = [os.fspath(file) for file in options[key]]
            call = self._call("submit", command=words, cwd=where, name=name, **options)
        return Submitted(self, call.result())

    def jobs(self, *words, constraint=None, attributes=None, where="queue", limit=None):
        """Jobs as a list of `Job`. `where`: queue, history or both. `attributes`: only these, which is faster."""
        call = self._call(
            "jobs", **selection(words), constraint=constraint, attributes=attributes, where=where, limit=limit
        )
        found = []
        for chunk in call:
            for ad in chunk:
                job = Job(ad)
                job.agent = self
                found.append(job)
        return found

    def history(self, *words, **options):
        return self.jobs(*words, where="history", **options)

    def wait(self, *words, timeout=None, until="end", constraint=None):
        """True when all have ended (`until`: end, start, or settled, which is ended or held); False after `timeout` s."""
        call = self._call("wait", **selection(words), constraint=constraint, seconds=timeout, until=until)
        return call.result()["done"]

    def act(self, action, *words, constraint=None, reason=None):
        """hold, release or remove: a list of `{"job", "result", "message"}`."""
        return self._call("act", action=action, **selection(words), constraint=constraint, reason=reason).result()

    def hold(self, *words, **options):
        return self.act("hold", *words, **options)

    def release(self, *words, **options):
        return self.act("release", *words, **options)

    def remove(self, *words, **options):
        return self.act("remove", *words, **options)

    def retry(self, *words, constraint=None):
        """Failed and removed jobs again: a list of `{"job", "result", "message", "as"}`."""
        return self._call("retry", **selection(words), constraint=constraint).result()

    def why(self, *words, constraint=None):
        """Why jobs do not run, or how they failed: a list of `{"job", "state", "summary", "details", "suggestions"}`."""
        return list(self._call("why", **selection(words), constraint=constraint))

    def sites(self):
        return self._call("sites").result()

    def events(self, since=None):
        """Changes of the queue, from now on or after the `cursor` of an earlier one. Never ends by itself."""
        call = self._call("events", **({} if since is None else {"from": since}))

        def every():
            try:
                for one in call:
                    event = Event(one)
                    event.cursor = event.pop("cursor")
                    yield event
            finally:
                call.cancel()

        return every()

    def map_call(self, **params):
        """The protocol's `map`, for `Executor`."""
        return self._call("map", **params)

    def close(self):
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
