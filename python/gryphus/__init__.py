"""Gryphus: jobs on any cluster that you may use, each run exactly once.

    import gryphus

    job = gryphus.submit(["./simulate", "--steps", "100"], cpus=4, output=["result.csv"])
    job.wait()

    with gryphus.Executor() as pool:
        squares = list(pool.map(pow, range(10), [2] * 10))

See docs/python.md. Functions of the module use one agent, the user's; `Agent(home=...)` is another one.
"""

from ._agent import Agent, Event, Job, Submitted
from ._client import GryphusError
from ._executor import Executor, PythonMismatch, TaskDied

__all__ = [
    "Agent",
    "Event",
    "Executor",
    "GryphusError",
    "Job",
    "PythonMismatch",
    "Submitted",
    "TaskDied",
    "events",
    "history",
    "jobs",
    "retry",
    "submit",
    "wait",
    "why",
]
__version__ = "0.1.0"

_default = None


def _agent():
    global _default
    if _default is None:
        _default = Agent()
    return _default


def submit(command=None, **options):
    """Submits one command, or a submit description; see `Agent.submit`."""
    return _agent().submit(command, **options)


def jobs(*selection, **options):
    """The jobs in the queue; see `Agent.jobs`."""
    return _agent().jobs(*selection, **options)


def history(*selection, **options):
    """Jobs that have left the queue, newest first; see `Agent.history`."""
    return _agent().history(*selection, **options)


def wait(*selection, **options):
    """Waits until jobs have ended; see `Agent.wait`."""
    return _agent().wait(*selection, **options)


def events(since=None):
    """Every change of the queue; see `Agent.events`."""
    return _agent().events(since)


def retry(*selection, **options):
    """Submits failed jobs again; see `Agent.retry`."""
    return _agent().retry(*selection, **options)


def why(*selection, **options):
    """Why jobs do not run; see `Agent.why`."""
    return _agent().why(*selection, **options)
