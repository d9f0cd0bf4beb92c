#!/usr/bin/env python3
"""A worker for Orchestrix in Python, with nothing but the standard library.

    python3 worker.py --server http://127.0.0.1:8080
    curl localhost:8080/jobs -H 'content-type: application/json' \\
         -d '{"jobType": "example.add", "payload": {"a": 1, "b": 2}}'

Put your own functions into HANDLERS. One takes a Job and returns its result, as JSON. Any exception is a failure that is tried
again; Fatal is one that is not. A job may run twice (a worker can die after its work and before its word), so let
handlers bear that. Long ones should look at job.stopped now and then, and raise Stopped when it is set.

SIGTERM or SIGINT lets running jobs finish for --drain-timeout, then hands back the rest; a second one ends it at once. A worker that an
operator drains takes nothing new and ends when what it runs is done.
"""

import argparse
import contextlib
import http.client
import json
import os
import random
import signal
import socket
import sys
import threading
import time
import urllib.parse


class Fatal(Exception):
    """A failure that another try will not mend."""


class Stopped(Exception):
    """The handler was asked to stop, and did."""


def add(job):
    return job.payload["a"] + job.payload["b"]


def fail(job):
    raise (RuntimeError if job.payload.get("retryable", True) else Fatal)(job.payload.get("message", "as asked"))


def count(job):
    """Counts up to n, so many seconds apart; goes on where an earlier attempt was stopped."""
    done = job.checkpoint or 0
    while done < job.payload["n"]:
        if job.stopped.wait(job.payload.get("seconds", 1)):
            raise Stopped
        done += 1
        job.progress(percent=100 * done / job.payload["n"], message=f"{done} counted", checkpoint=done)
    job.log(f"counted to {done}")
    return done


HANDLERS = {"example.add": add, "example.fail": fail, "example.count": count}


class Away(Exception):
    """The server is not there, or has too much to do; worth another try."""


class Lost(Exception):
    """Somebody else owns the job now."""


class Job:
    """A leased job, as its handler sees it."""

    def __init__(self, worker, lease):
        self.worker, self.token, self.attempt = worker, lease["leaseToken"], lease["attempt"]
        self.id, self.type, self.payload = lease["jobId"], lease["jobType"], lease["payload"]
        self.checkpoint, self.lease_seconds = lease.get("checkpoint"), lease.get("leaseSeconds", 30)
        self.stopped = threading.Event()  # cancelled, lost, or the worker has no more time for it

    def progress(self, **what):
        self.say("progress", what)

    def log(self, message, level="info"):
        self.say("logs", {"lines": [{"level": level, "message": message}]})

    def say(self, what, body):
        """What is said on the way and refused, such as a message that is too long, is no failure of the job."""
        try:
            self.worker.tell(self, what, body)
        except RuntimeError as error:
            print(error, file=sys.stderr)


class Worker:
    def __init__(self, options):
        self.options, self.name = options, options.worker_name or f"{socket.gethostname()}-{os.getpid()}"
        self.running, self.changed = {}, threading.Condition()  # by token; told whenever it changes
        self.paused, self.ending, self.gone = False, threading.Event(), False
        self.waiting = None  # where it waits for jobs

    def call(self, path, body, timeout=10, waits=False):
        headers = {"Content-Type": "application/json"}
        if self.options.api_key:
            headers["Authorization"] = f"Bearer {self.options.api_key}"
        body, server = json.dumps(body, allow_nan=False), urllib.parse.urlsplit(self.options.server)
        kind = http.client.HTTPSConnection if server.scheme == "https" else http.client.HTTPConnection
        connection = kind(server.netloc, timeout=timeout)
        try:
            connection.request("POST", server.path.rstrip("/") + path, body, headers)
            if waits:
                with self.changed:
                    if self.ending.is_set():
                        raise Away("the worker ends")
                    self.waiting = connection.sock
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
            if answer.status < 300:
                return json.loads(text or "{}")
        except (OSError, ValueError, http.client.HTTPException) as error:  # refused, reset, too slow, not ours
            raise Away(str(error))
        finally:
            self.waiting = None if waits else self.waiting
            connection.close()
        if answer.status >= 500 or answer.status in (408, 429):
            raise Away(f"{answer.status} {text}")
        raise (Lost if answer.status == 409 else RuntimeError)(f"{path}: {answer.status} {text}")

    def tell(self, job, what, body):
        """Says something about a job until it is heard: every call may be repeated."""
        pause = 0.1
        while True:
            try:
                return self.call(f"/worker/leases/{job.token}/{what}", body)
            except Away as error:
                print(f"cannot say {what} of {job.id} now: {error}", file=sys.stderr)
                time.sleep(pause * random.uniform(0.5, 1))
                pause = min(pause * 2, 5)

    def run(self, job):
        try:
            try:
                outcome = "complete", {"result": HANDLERS[job.type](job)}
                json.dumps(outcome, allow_nan=False)  # what is no JSON is a failure of its own
            except Lost:
                raise
            except Exception as error:
                outcome = "fail", {"error": f"{type(error).__name__}: {error}", "retryable": not isinstance(error, Fatal)}
                if job.stopped.is_set():
                    outcome = "release", {}  # of a job that is to be cancelled this says that it was stopped
            with self.changed:
                mine = self.running.get(job.token) is job
            if mine:
                try:
                    self.tell(job, *outcome)
                except RuntimeError as error:  # refused, such as a result over 1 MiB: it would be no different another time
                    outcome = "fail", {"error": f"the outcome was refused: {error}"[:2000], "retryable": False}
                    self.tell(job, *outcome)
                print(f"{outcome[0]} {job.type} {job.id}", flush=True)
        except Lost:
            print(f"lost {job.type} {job.id}", file=sys.stderr)
        except RuntimeError as error:  # refused again; the lease runs out
            print(error, file=sys.stderr)
        with self.changed:
            self.running.pop(job.token, None)
            self.changed.notify_all()

    def fetch(self):
        """Asks for as many jobs as there is room for, and waits at the server while there are none."""
        pause = 0.1
        while not self.ending.is_set():
            with self.changed:
                free = 0 if self.paused else self.options.concurrency - len(self.running)
                if free == 0:
                    self.changed.wait(1)
                    continue
            ask = {"workerId": self.name, "queues": self.options.queues.split(","), "max": free, "waitSeconds": 20,
                   "jobTypes": list(HANDLERS), "capacity": {"slots": self.options.concurrency}}
            began = time.monotonic()
            try:
                leases = self.call("/worker/leases", ask, timeout=35, waits=True)["leases"]
            except (Away, RuntimeError) as error:
                if self.ending.is_set():
                    break
                print(f"no jobs can be had now: {error}", file=sys.stderr)
                self.ending.wait(pause * random.uniform(0.5, 1))
                pause = min(pause * 2, 10)
                continue
            pause = 0.1
            jobs = [Job(self, lease) for lease in leases]
            with self.changed:
                if not self.ending.is_set():
                    self.running.update({job.token: job for job in jobs})
                    for job in jobs:
                        threading.Thread(target=self.run, args=[job], daemon=True).start()
                    jobs = []
                self.changed.notify_all()
            for job in jobs:  # too late: others can have them
                self.tell(job, "release", {})
            if not leases and time.monotonic() - began < 1:
                self.ending.wait(1)  # told to wait elsewhere

    def interval(self):
        return min([self.options.heartbeat] + [job.lease_seconds / 3 for job in self.running.values()])

    def beat(self):
        """Shows that the worker lives, and learns what became of its leases and what it should do."""
        last, pause = time.monotonic(), None
        while True:
            with self.changed:
                while (rest := last + (pause or self.interval()) - time.monotonic()) > 0 and not self.gone:
                    self.changed.wait(rest)
                if self.gone:
                    return
                jobs = dict(self.running)
            last, pause = time.monotonic(), None
            free = self.options.concurrency - len(jobs)
            try:
                say = {"workerId": self.name, "leaseTokens": list(jobs), "freeSlots": free, "draining": self.ending.is_set()}
                answer = self.call("/worker/heartbeat", say, timeout=5)
            except (Away, RuntimeError) as error:
                print(f"no heartbeat: {error}", file=sys.stderr)
                pause = 0.5
                continue
            for lease in answer["leases"]:
                if lease["state"] != "held":
                    jobs[lease["leaseToken"]].stopped.set()
            self.paused = answer["directive"] == "drain"
            if answer["directive"] == "stop":
                self.ending.set()

    def work(self):
        fetch, beat = [threading.Thread(target=part, daemon=True) for part in (self.fetch, self.beat)]
        fetch.start()
        beat.start()
        print(f"worker {self.name} on {self.options.server}: {', '.join(HANDLERS)}", flush=True)
        while not self.ending.wait(0.2) and not (self.paused and not self.running):
            pass
        self.ending.set()
        with self.changed:
            waiting, self.waiting = self.waiting, None
        if waiting:  # otherwise it would be given what is handed back below
            with contextlib.suppress(OSError):  # it ended just now
                waiting.shutdown(socket.SHUT_RDWR)
        fetch.join(10)
        with self.changed:
            self.changed.wait_for(lambda: not self.running, self.options.drain_timeout)
            for job in self.running.values():
                job.stopped.set()
            self.changed.wait_for(lambda: not self.running, 2)
            rest, self.running = list(self.running.values()), {}
        for job in rest:  # their threads end with the process
            with contextlib.suppress(Lost, Away, RuntimeError):  # the others are handed back all the same
                self.call(f"/worker/leases/{job.token}/release", {})
        with self.changed:
            self.gone = True
            self.changed.notify_all()
        beat.join(10)  # whoever shows that it lives after it left is there again
        self.call("/worker/leave", {"workerId": self.name})


def main():
    parser = argparse.ArgumentParser(description="A worker for Orchestrix")
    parser.add_argument("--server", default=os.environ.get("ORCHESTRIX_SERVER_URL", "http://127.0.0.1:8080"))
    parser.add_argument("--api-key", default=os.environ.get("ORCHESTRIX_API_KEY"))
    parser.add_argument("--worker-name")
    parser.add_argument("--queues", default="*")
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--heartbeat", type=float, default=10, help="seconds")
    parser.add_argument("--drain-timeout", type=float, default=30, help="seconds")
    worker = Worker(parser.parse_args())

    def end(number, frame):
        if worker.ending.is_set():
            os._exit(1)
        worker.ending.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    try:
        worker.work()
    except (Away, Lost, RuntimeError) as error:
        sys.exit(f"the leases of what was left run out: {error}")


if __name__ == "__main__":
    main()
