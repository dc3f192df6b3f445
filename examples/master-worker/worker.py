#!/usr/bin/env python3
"""
A worker: takes tasks of the master's directory until there are no more. A task is taken by renaming it, which only one worker can;
one that is run again first finishes what it had taken. Usage: worker.py N NAME
"""

import sys
import time

from chirp import MISSING, Chirp, ChirpError
from qap import Search

n, name = int(sys.argv[1]), sys.argv[2]
home = Chirp()


def names(directory):
    """What is there; nothing before the master has begun."""
    try:
        return [name for name in home.names("mw" + directory) if not name.endswith(".new")]
    except ChirpError as error:
        if error.code != MISSING:
            raise
        return []


def best():
    return int(home.read("mw/best"))


def work(task):
    def found(least, places):
        home.write("mw/found/%d.%s" % (least, task), " ".join(map(str, places)).encode())

    search = Search(n, best, found)
    search.below([int(place) for place in task.split("-")])
    home.write("mw/done/" + task, str(search.nodes).encode())
    home.ask("unlink", "mw/taken/%s.%s" % (task, name))


def take():
    """A task that this worker has taken already, or a new one; None: there is none now."""
    for taken in names("/taken"):
        if taken.endswith("." + name):
            return taken[: -len(name) - 1]
    for task in names("/todo"):
        try:
            home.rename("mw/todo/" + task, "mw/taken/%s.%s" % (task, name))
            return task
        except ChirpError as error:
            if error.code != MISSING:
                raise
    return None


tasks = 0
while "over" not in names(""):
    task = take()
    if task is None:
        time.sleep(1)
        continue
    work(task)
    tasks += 1
    home.ask("set_job_attr", "TasksDone", tasks)
print(name, "did", tasks, "tasks")
