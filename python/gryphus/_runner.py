"""Runs a batch of functions where the executor sent it. Its text is passed to `python -c`, so it imports nothing of ours.

Results go to the first standard output, one frame for each step: a length, a letter and the contents. What functions
print goes to standard error.
"""

import os
import pickle
import struct
import sys
import time


def main():
    out = os.dup(1)
    os.dup2(2, 1)

    def say(letter, body=b""):
        frame = struct.pack(">Ic", len(body), letter) + body
        while frame:
            frame = frame[os.write(out, frame) :]

    kind, where = sys.argv[1], sys.argv[2:]
    if kind == "f":
        with open(where[0], "rb") as file:
            batch = pickle.load(file)
    else:
        import base64

        batch = pickle.loads(base64.b64decode("".join(where)))
    dumps = pickle.dumps
    sys.path += [place for place in batch["path"] if place not in sys.path]
    if batch["cloudpickle"]:
        here = list(sys.version_info[:2])
        if here != batch["version"]:
            text = "functions were pickled by Python %d.%d, and %s there is %d.%d"
            return say(b"M", (text % (tuple(batch["version"]) + (sys.executable,) + tuple(here))).encode())
        try:
            import cloudpickle
        except ImportError:
            return say(b"M", ("cloudpickle is not installed for %s there" % sys.executable).encode())
        dumps = cloudpickle.dumps
    sys.argv = [""]
    spent = 0.0
    for number, task in enumerate(batch["tasks"]):
        say(b"B", struct.pack(">I", number))
        body, seconds = outcome(task, batch["main"], dumps)
        spent += seconds
        say(b"R", body)
        sys.stdout.flush()
        sys.stderr.flush()
    say(b"E", struct.pack(">d", spent))


def outcome(task, main_file, dumps):
    """The result as a frame's contents, and the seconds of the call alone: what loading imports is paid once a batch."""
    began = time.monotonic()
    try:
        as_main(main_file)
        function, args, kwargs = pickle.loads(task)
        began = time.monotonic()
        value = function(*args, **kwargs)
        seconds = time.monotonic() - began
        return dumps((True, value, None), 4), seconds
    except BaseException as error:
        return failure(error, dumps), time.monotonic() - began


def failure(error, dumps):
    import traceback

    text = traceback.format_exc()
    try:
        # An exception may be picklable and yet not come back.
        body = dumps((False, error, text), 4)
        pickle.loads(body)
        return body
    except BaseException:
        plain = RuntimeError("%s: %s" % (type(error).__name__, error))
        return pickle.dumps((False, plain, text), 4)


def as_main(path, done=[]):
    """As multiprocessing does: the script's functions are found in __main__, and its own part is not run."""
    if path is None or done:
        return
    done.append(path)
    import runpy
    import types

    module = types.ModuleType("__mp_main__")
    module.__dict__.update(runpy.run_path(path, run_name="__mp_main__"))
    sys.modules["__main__"] = sys.modules["__mp_main__"] = module


main()
