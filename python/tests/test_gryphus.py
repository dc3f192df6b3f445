"""Run by test/python.test.ts with a private agent: GRYPHUS, GRYPHUS_HOME and PYTHONPATH are set."""

import concurrent.futures
import json
import os
import random
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import gryphus
from gryphus._client import find_socket, lines_of
import work


class Jobs(unittest.TestCase):
    def test_the_socket_is_its_owners(self):
        mode = os.stat(find_socket()).st_mode
        self.assertTrue(stat.S_ISSOCK(mode))
        self.assertEqual(stat.S_IMODE(mode), 0o600)

    def test_a_command_runs_and_its_files_come_back(self):
        with tempfile.TemporaryDirectory() as here:
            with open(os.path.join(here, "data"), "w") as file:
                file.write("data\n")
            script = 'cat data; echo "$1 $A" >result; exit 3'
            job = gryphus.submit(
                ["sh", "-c", script, "sh", "it's $(x)\nü"],
                cwd=here,
                input=["data"],
                output=["result"],
                stdout="out",
                env={"A": "b c"},
                name="python",
            )
            self.assertTrue(job.wait(60))
            [ended] = job.jobs()
            self.assertEqual((ended.status, ended.exit_status, ended["JobBatchName"]), ("completed", 3, "python"))
            with open(os.path.join(here, "result"), encoding="utf-8") as file:
                self.assertEqual(file.read(), "it's $(x)\nü b c\n")
            with open(os.path.join(here, "out")) as file:
                self.assertEqual(file.read(), "data\n")
            self.assertEqual(gryphus.why(ended.id)[0]["summary"], "It exited with status 3.")

    def test_a_description_and_its_jobs(self):
        made = gryphus.submit(description="executable = /bin/true\nhold = true\nqueue 3\n")
        self.assertEqual(made.total, 3)
        found = gryphus.jobs(made.cluster, attributes=["Cmd"])
        self.assertEqual([(job.id, job["Cmd"]) for job in found], [("%d.%d" % (made.cluster, n), "/bin/true") for n in range(3)])
        self.assertEqual(len(gryphus.jobs(made, constraint="ProcId > 0")), 2)
        self.assertFalse(gryphus.wait(made, timeout=0.1))
        self.assertTrue(gryphus.wait(made, until="settled"))
        done = gryphus._agent().release("%d.1" % made.cluster)
        self.assertEqual(done, [{"job": "%d.1" % made.cluster, "result": "done", "message": "released"}])
        self.assertTrue(gryphus.wait("%d.1" % made.cluster, timeout=60))
        made.remove()
        self.assertTrue(made.wait(60))
        self.assertEqual(len(gryphus.history(made.cluster)), 3)
        again = gryphus.retry(made)
        self.assertEqual([one["result"] for one in again], ["done", "done"])

    def test_events_come_and_go_on_from_a_cursor(self):
        stream = gryphus.events()
        seen = []
        ready = threading.Event()

        def read():
            for event in stream:
                seen.append(event)
                if event["type"] == "transition" and event["to"] == "completed":
                    ready.set()
                    return

        thread = threading.Thread(target=read)
        thread.start()
        job = gryphus.submit(["true"])
        self.assertTrue(ready.wait(60))
        thread.join()
        self.assertIn("submitted", [event["type"] for event in seen])
        later = gryphus.events(since=seen[0].cursor)
        self.assertEqual(next(later).cursor, seen[1].cursor)
        later.close()
        job.wait(60)

    def test_a_server_that_ended_is_started_again(self):
        with gryphus.Agent() as agent:
            self.assertEqual(agent.jobs(limit=0), [])
            os.unlink(find_socket())
            agent.close()
            self.assertEqual(agent.jobs(limit=0), [])
            # One that was ended between two requests is not used again.
            [idle] = agent._client._idle
            idle.sock.shutdown(socket.SHUT_RDWR)
            self.assertEqual(agent.jobs(limit=0), [])
            stream = agent.events()
            agent.close()
            with self.assertRaises(gryphus.GryphusError) as caught:
                next(stream)
            self.assertEqual(caught.exception.code, "queue-unavailable")
            self.assertTrue(agent.wait("nobody-here", timeout=60))

    def test_refusals(self):
        with self.assertRaises(gryphus.GryphusError) as caught:
            gryphus.submit(description="executable = /bin/true\nqueue many of them\n")
        self.assertEqual(caught.exception.code, "bad-input")
        with self.assertRaises(gryphus.GryphusError) as caught:
            gryphus.submit(["true"], site="nowhere")
        self.assertEqual(caught.exception.code, "site-unknown")
        with self.assertRaises(gryphus.GryphusError) as caught:
            gryphus.submit(["true"], colour="red")
        self.assertEqual(caught.exception.code, "bad-input")
        self.assertIn("colour: there is no such field", str(caught.exception))
        with self.assertRaises(gryphus.GryphusError) as caught:
            gryphus.submit(description="#" * (65 * 2**20))
        self.assertIn("64 MiB", str(caught.exception))
        with self.assertRaises(gryphus.GryphusError) as caught:
            gryphus.jobs(constraint="JobStatus == (")
        self.assertEqual(caught.exception.code, "bad-input")
        with self.assertRaises(TypeError):
            gryphus.submit("true")
        with self.assertRaises(gryphus.GryphusError) as caught:
            gryphus.Agent(program="/nonexistent/gryphus" if os.path.exists("/nonexistent") else "/bin/false").jobs()
        self.assertEqual(caught.exception.code, "queue-unavailable")


    def test_nobody_is_not_everybody(self):
        kept = gryphus.submit(description="executable = /bin/true\nhold = true\nqueue\n")
        agent = gryphus._agent()
        for act in (agent.remove, agent.hold, agent.release, agent.retry):
            with self.assertRaises(ValueError):
                act(*[])
        self.assertEqual([job.status for job in kept.jobs()], ["held"])
        self.assertEqual(agent.remove(constraint="ClusterId == %d" % kept.cluster)[0]["result"], "done")
        self.assertTrue(kept.wait(timeout=float("inf")))

    def test_words_and_files_may_be_bytes(self):
        with tempfile.TemporaryDirectory() as here:
            job = gryphus.submit([b"sh", "-c", b"echo $0 $1", "a", 5], cwd=here, stdout="out")
            self.assertTrue(job.wait(60))
            with open(os.path.join(here, "out")) as file:
                self.assertEqual(file.read(), "a 5\n")


class Streams(unittest.TestCase):
    def test_lines_come_whole_however_they_are_cut(self):
        random.seed(21)
        for _ in range(200):
            values = [{"item": "ü\n" * random.randrange(5)} for _ in range(random.randrange(6))]
            data = b"".join(json.dumps(value, ensure_ascii=False).encode() + b"\n" for value in values)
            at = sorted(random.randrange(len(data) + 1) for _ in range(random.randrange(8)))
            parts = [data[a:b] for a, b in zip([0, *at], [*at, len(data)]) if a < b]
            self.assertEqual(list(lines_of(iter([*parts, b""]).__next__)), values)


class Executor(unittest.TestCase):
    def test_results_come_in_order(self):
        with gryphus.Executor(memory=64) as pool:
            self.assertEqual(list(pool.map(work.square, range(200))), [n * n for n in range(200)])

    def test_ten_thousand(self):
        with gryphus.Executor(memory=64) as pool:
            pool.submit(work.square, 1).result()
            began = time.monotonic()
            total = sum(pool.map(work.square, range(10000)))
            rate = 10000 / (time.monotonic() - began)
        self.assertEqual(total, sum(n * n for n in range(10000)))
        print("%.0f futures a second" % rate, file=sys.stderr)
        self.assertGreater(rate, 500)

    def test_short_calls_start_few_processes(self):
        with gryphus.Executor(2, memory=64) as pool:
            pool.submit(work.process, 0).result()
            with pool._lock:
                futures = [pool.submit(work.process, n) for n in range(3000)]
            processes = {future.result() for future in futures}
        self.assertLessEqual(len(processes), 4)

    def test_exceptions_come_back_with_their_traceback(self):
        with gryphus.Executor(memory=64) as pool:
            with self.assertRaises(KeyError) as caught:
                pool.submit(work.fails, 7).result()
            self.assertEqual(caught.exception.args, ("no such model: 7",))
            self.assertIn('raise KeyError("no such model', str(caught.exception.__cause__))
            with self.assertRaisesRegex(RuntimeError, "Odd: 1 and 2"):
                pool.submit(work.odd).result()
            self.assertRegex(str(pool.submit(work.unpicklable).exception()), "(?i)pickle")

    def test_a_process_that_dies_fails_its_function_only(self):
        with gryphus.Executor(1, memory=64) as pool:
            list(pool.map(work.square, range(10)))
            futures = [pool.submit(work.dies, n) for n in range(20)]
            for n, future in enumerate(futures):
                if n == 3:
                    with self.assertRaisesRegex(gryphus.TaskDied, "signal 9"):
                        future.result()
                else:
                    self.assertEqual(future.result(), n)

    def test_a_forked_child_is_told_at_once_that_it_needs_its_own(self):
        with gryphus.Executor(1, memory=64) as pool:
            self.assertEqual(pool.submit(work.square, 3).result(), 9)
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                try:
                    pool.shutdown()
                    pool.submit(work.square, 4)
                    os.write(write, b"taken")
                except RuntimeError as error:
                    os.write(write, str(error).encode())
                finally:
                    os._exit(0)
            os.close(write)
            with open(read) as said:
                self.assertIn("this Executor belongs to process %d" % os.getpid(), said.read())
            os.waitpid(child, 0)
            self.assertEqual(pool.submit(work.square, 5).result(), 25)

    def test_what_is_not_begun_can_be_cancelled(self):
        with gryphus.Executor(1, memory=64) as pool:
            futures = [pool.submit(work.slow, 0.3) for _ in range(30)]
            self.assertTrue(futures[-1].cancel())
            self.assertEqual(futures[0].result(), 0.3)
            pool.shutdown(wait=False, cancel_futures=True)
            done, _ = concurrent.futures.wait(futures)
        self.assertGreater(sum(future.cancelled() for future in done), 10)
        with self.assertRaises(RuntimeError):
            pool.submit(work.square, 1)

    def test_large_arguments_and_results(self):
        with gryphus.Executor(memory=64) as pool:
            self.assertEqual(pool.submit(work.size, b"x" * 3_000_000).result(), 3_000_000)
            self.assertEqual(len(pool.submit(bytes, 3_000_000).result()), 3_000_000)

    def test_prints_are_seen_and_the_directory_is_this_one(self):
        with gryphus.Executor(memory=64) as pool:
            self.assertEqual(pool.submit(work.prints).result(), "returned")
            self.assertEqual(pool.submit(work.where).result(), os.getcwd())
        with gryphus.Executor(memory=64, anywhere=True, python=sys.executable) as pool:
            self.assertNotEqual(pool.submit(work.where).result(), os.getcwd())
            self.assertEqual(pool.submit(work.size, b"x" * 100_000).result(), 100_000)

    def test_a_script_and_its_functions(self):
        with tempfile.TemporaryDirectory() as here:
            script = os.path.join(here, "script.py")
            with open(script, "w") as file:
                file.write(
                    "import gryphus\n\ndef cube(x):\n    return x ** 3\n\n"
                    "if __name__ == '__main__':\n"
                    "    with gryphus.Executor(memory=64) as pool:\n        print(sum(pool.map(cube, range(10))))\n"
                )
            said = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
            self.assertEqual((said.stdout, said.returncode), ("2025\n", 0), said.stderr)

    def test_ctrl_c_does_not_wait_for_what_was_submitted(self):
        for how in ("with gryphus.Executor(memory=64) as pool:\n        ", "pool = gryphus.Executor(memory=64)\n    "):
            with tempfile.TemporaryDirectory() as here:
                script = os.path.join(here, "script.py")
                with open(script, "w") as file:
                    file.write(
                        "import gryphus, os, time\n\ndef nap(x):\n    open('begun', 'w').close()\n    time.sleep(600)\n\n"
                        "if __name__ == '__main__':\n"
                        "    %slist(pool.map(nap, range(9)))\n" % how
                    )
                began = os.path.join(here, "begun")
                with subprocess.Popen([sys.executable, script], cwd=here, stderr=subprocess.PIPE, text=True) as program:
                    while not os.path.exists(began) and program.poll() is None:
                        time.sleep(0.05)
                    program.send_signal(signal.SIGINT)
                    try:
                        said = program.communicate(timeout=60)[1]
                    except subprocess.TimeoutExpired:
                        program.kill()
                        raise
                self.assertEqual(program.returncode, -signal.SIGINT, said)
                self.assertNotIn("Exception ignored", said)

    def test_a_batch_that_cannot_be_sent_fails_the_calls(self):
        with gryphus.Executor(1, memory=64) as pool:
            shutil.rmtree(pool._dir)
            with self.assertRaises(FileNotFoundError):
                pool.submit(work.size, b"x" * 3_000_000).result()
            with self.assertRaises(concurrent.futures.BrokenExecutor):
                pool.submit(work.square, 1)

    def test_a_python_that_is_not_there(self):
        with gryphus.Executor(memory=64, python="/no/such/python") as pool:
            with self.assertRaises(gryphus.TaskDied):
                pool.submit(work.square, 1).result()


if __name__ == "__main__":
    unittest.main()
