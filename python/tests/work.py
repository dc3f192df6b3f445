"""Functions for the tests, in a module that both sides import."""

import os
import threading
import time


def square(x):
    return x * x


def fails(x):
    raise KeyError("no such model: %s" % x)


class Odd(Exception):
    """Cannot come back as it is: it is made from two arguments."""

    def __init__(self, one, two):
        super().__init__("%s and %s" % (one, two))


def odd():
    raise Odd(1, 2)


def dies(x):
    if x == 3:
        os.kill(os.getpid(), 9)
    return x


def slow(seconds):
    time.sleep(seconds)
    return seconds


def prints():
    print("on standard output")
    return "returned"


def process(_):
    return os.getpid()


def where():
    return os.getcwd()


def size(data):
    return len(data)


def unpicklable():
    """Neither pickle nor cloudpickle takes a lock."""
    return threading.Lock()
