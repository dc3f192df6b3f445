"""Submits futures that square a number, and prints how long that took: futures.py NUMBER."""

import json
import sys
import time

import gryphus


def square(n):
    return n * n


number = int(sys.argv[1])
began = time.perf_counter()
with gryphus.Executor() as executor:
    executor.submit(square, 0).result()
    first = time.perf_counter()
    futures = [executor.submit(square, n) for n in range(number)]
    submitted = time.perf_counter()
    assert [future.result() for future in futures] == [n * n for n in range(number)]
    ended = time.perf_counter()
print(
    json.dumps({"first": first - began, "submit": submitted - first, "seconds": ended - first})
)
