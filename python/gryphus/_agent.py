"""An agent: submit, look, wait, act."""

import os
import threading
import urllib.parse

from ._client import Client, GryphusError

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


def _is_path(word):
    return isinstance(word, (str, bytes)) or hasattr(word, "__fspath__")


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


def chosen_to_act(words, constraint):
    """The same for what changes jobs: an empty list of jobs is not all jobs."""
    if not words and constraint is None:
        raise ValueError("name jobs, clusters or a user, or give a constraint; all of them: constraint='true'")
    return selection(words)


class Map:
    """Tasks of the pool: iterating gives the end of each. The iteration runs in one thread, and tasks are added by another."""

    def __init__(self, client, params):
        self._client = client
        self._stream = client.stream("POST", "/maps", params)
        self._ready = threading.Event()
        self._path = None

    def __iter__(self):
        try:
            for item in self._stream:
                if self._path is None:
                    self._path = "/maps/%s/tasks" % item["map"]
                    self._ready.set()
                else:
                    yield item
        finally:
            self._ready.set()

    def add(self, tasks, last=False):
        """Waits for the pool to take tasks if many wait. Does nothing if the map has ended: the iteration says why."""
        self._ready.wait()
        if self._path is None:
            return
        try:
            self._client.ask("POST", self._path, {"tasks": tasks, "last": last})
        except GryphusError as error:
            if error.code not in ("not-found", "queue-unavailable"):
                raise

    def cancel(self):
        """Withdraws what has not ended."""
        self._stream.cancel()


class Agent:
    """The agent of this user, or of another `home`. Connects when it is first used, and again after a lost connection."""

    def __init__(self, home=None, program=None):
        self._client = Client(home, program)

    def _post(self, path, **body):
        return self._client.ask("POST", path, body)

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
            answer = self._post("/submit", description=description, cwd=where, name=name)
        else:
            if isinstance(command, str):
                raise TypeError("the command is a list of words: ['sh', '-c', %r]" % command)
            words = [os.fsdecode(word) if _is_path(word) else str(word) for word in command]
            for key in ("input", "output"):
                if options.get(key) is not None:
                    options[key] = [os.fsdecode(file) for file in options[key]]
            answer = self._post("/run", command=words, cwd=where, name=name, **options)
        return Submitted(self, answer)

    def jobs(self, *words, constraint=None, attributes=None, where="queue", limit=None):
        """Jobs as a list of `Job`. `where`: queue, history or both. `attributes`: only these, which is faster."""
        asked = dict(constraint=constraint, attributes=attributes, where=where, limit=limit)
        found = []
        for ad in self._client.stream("POST", "/jobs/query", {**selection(words), **asked}):
            job = Job(ad)
            job.agent = self
            found.append(job)
        return found

    def history(self, *words, **options):
        return self.jobs(*words, where="history", **options)

    def wait(self, *words, timeout=None, until="end", constraint=None):
        """True when all have ended (`until`: end, start, or settled, which is ended or held); False after `timeout` s."""
        seconds = None if timeout == float("inf") else timeout
        asked = dict(constraint=constraint, seconds=seconds, until=until)
        return self._post("/jobs/wait", **selection(words), **asked)["done"]

    def act(self, action, *words, constraint=None, reason=None):
        """hold, release or remove: a list of `{"job", "result", "message"}`."""
        return self._post("/jobs/" + action, **chosen_to_act(words, constraint), constraint=constraint, reason=reason)

    def hold(self, *words, **options):
        return self.act("hold", *words, **options)

    def release(self, *words, **options):
        return self.act("release", *words, **options)

    def remove(self, *words, **options):
        return self.act("remove", *words, **options)

    def retry(self, *words, constraint=None):
        """Failed and removed jobs again: a list of `{"job", "result", "message", "as"}`."""
        return self._post("/jobs/retry", **chosen_to_act(words, constraint), constraint=constraint)

    def why(self, *words, constraint=None):
        """Why jobs do not run, or how they failed: a list of `{"job", "state", "summary", "details", "suggestions"}`."""
        return list(self._client.stream("POST", "/jobs/why", {**selection(words), "constraint": constraint}))

    def sites(self):
        return self._client.ask("GET", "/sites")

    def events(self, since=None):
        """Changes of the queue, from now on or after the `cursor` of an earlier one. Never ends by itself."""
        asked = "" if since is None else "?" + urllib.parse.urlencode({"from": since})
        stream = self._client.stream("GET", "/events/follow" + asked).begin()

        def every():
            try:
                for one in stream:
                    event = Event(one)
                    event.cursor = event.pop("cursor")
                    yield event
            finally:
                stream.cancel()

        return every()

    def map(self, **params):
        """A map of the interface, for `Executor`."""
        return Map(self._client, params)

    def close(self):
        self._client.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
