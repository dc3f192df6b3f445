#!/usr/bin/env python3
"""
The master, which runs where the jobs were submitted: writes the tasks, passes on the best placement that is known, and ends the workers. It
goes on where it was if it is started again. Usage: master.py N
"""

import os
import sys
import time

from qap import cost, problem

n = int(sys.argv[1])
ALL = 10**9


def put(path, text):
    with open(path + ".new", "w") as file:
        file.write(text)
    os.rename(path + ".new", path)


def names(directory):
    return [name for name in os.listdir(directory) if not name.endswith(".new")]


for directory in ("todo", "taken", "done", "found"):
    os.makedirs("mw/" + directory, exist_ok=True)
if not os.path.exists("mw/best"):
    put("mw/best", str(ALL))
tasks = ["%d-%d" % (i, j) for i in range(n) for j in range(n) if i != j]
known = set(names("mw/todo")) | {name.split(".")[0] for name in names("mw/taken")} | set(names("mw/done"))
for task in tasks:
    if task not in known:
        put("mw/todo/" + task, "")

best, done = ALL, 0
while done < len(tasks):
    done = len(names("mw/done"))
    for name in names("mw/found"):
        least = int(name.split(".")[0])
        if least < best:
            best = least
            put("mw/best", str(best))
            print("%d of %d tasks: %d" % (done, len(tasks), best), flush=True)
    time.sleep(0.2)
put("mw/over", "")
winner = min(names("mw/found"), key=lambda name: int(name.split(".")[0]))
with open("mw/found/" + winner) as file:
    places = [int(place) for place in file.read().split()]
nodes = 0
for task in tasks:
    with open("mw/done/" + task) as file:
        nodes += int(file.read())
print("best: %d, placement %s, %d nodes" % (cost(*problem(n), places), places, nodes))
