#!/usr/bin/env python3
"""A worker for Orchestrix in Python, with nothing but the standard library.

    python3 worker.py --server http://127.0.0.1:8080
    curl localhost:8080/jobs -H 'content-type: application/json' \\
         -d '{"jobType": "example.add", "payload": {"a": 1, "b": 2}}'

Put your own functions into HANDLERS. A handler takes a Job and returns its result as JSON. Any exception is a failure
that is retried; Fatal is one that is not. A job may run twice, because a worker can die after the work and before it
reports the outcome: handlers should be idempotent. Long handlers should check job.stopped, and raise Stopped when it is
set.

SIGTERM or SIGINT drains: running jobs have --drain-timeout to finish, then the rest is released. A second signal exits
at once. A worker that an operator drains leases nothing more and exits when its jobs are done.
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
    """A failure that must not be retried."""


class Stopped(Exception):
    """Raised by a handler that stopped on request."""


def add(job):
    return job.payload["a"] + job.payload["b"]


def fail(job):
    raise (RuntimeError if job.payload.get("retryable", True) else Fatal)(job.payload.get("message", "as asked"))


def count(job):
    """Counts up to n with a pause between two numbers; resumes at the checkpoint of an earlier attempt."""
    done = job.checkpoint or 0
    while done < job.payload["n"]:
        if job.stopped.wait(job.payload.get("seconds", 1)):
            raise Stopped
        done += 1
        job.progress(percent=100 * done / job.payload["n"], message=f"{done} counted", checkpoint=done)
    job.log(f"counted to {done}")
    return done


HANDLERS = {"example.add": add, "example.fail": fail, "example.count": count}


class Unavailable(Exception):
    """The server is unreachable or overloaded; the request may be retried."""


class LeaseLost(Exception):
    """The lease token no longer owns the job."""


class Job:
    """A leased job, as its handler sees it."""

    def __init__(self, worker, lease):
        self.worker, self.token, self.attempt = worker, lease["leaseToken"], lease["attempt"]
        self.id, self.type, self.payload = lease["jobId"], lease["jobType"], lease["payload"]
        self.checkpoint, self.lease_seconds = lease.get("checkpoint"), lease.get("leaseSeconds", 30)
        self.stopped = threading.Event()  # cancelled, lease lost, or the drain timeout is over

    def progress(self, **what):
        self.report("progress", what)

    def log(self, message, level="info"):
        self.report("logs", {"lines": [{"level": level, "message": message}]})

    def report(self, what, body):
        """Reports progress or logs. A refusal, such as of a message that is too long, does not fail the job."""
        try:
            self.worker.report(self, what, body)
        except RuntimeError as error:
            print(error, file=sys.stderr)


class Worker:
    def __init__(self, options):
        self.options, self.name = options, options.worker_name or f"{socket.gethostname()}-{os.getpid()}"
        self.running, self.changed = {}, threading.Condition()  # by lease token; the condition guards it
        self.paused, self.ending, self.gone = False, threading.Event(), False
        self.waiting = None  # the socket of the long poll for jobs

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
                        raise Unavailable("the worker is draining")
                    self.waiting = connection.sock
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
            if answer.status < 300:
                return json.loads(text or "{}")
        except (OSError, ValueError, http.client.HTTPException) as error:  # refused, reset, timed out, not HTTP
            raise Unavailable(str(error))
        finally:
            self.waiting = None if waits else self.waiting
            connection.close()
        if answer.status >= 500 or answer.status in (408, 429):
            raise Unavailable(f"{answer.status} {text}")
        raise (LeaseLost if answer.status == 409 else RuntimeError)(f"{path}: {answer.status} {text}")

    def report(self, job, what, body):
        """Reports on a job, and retries until the server answers: every call may be repeated."""
        pause = 0.1
        while True:
            try:
                return self.call(f"/worker/leases/{job.token}/{what}", body)
            except Unavailable as error:
                print(f"cannot report {what} of {job.id} now: {error}", file=sys.stderr)
                time.sleep(pause * random.uniform(0.5, 1))
                pause = min(pause * 2, 5)

    def run(self, job):
        try:
            try:
                outcome = "complete", {"result": HANDLERS[job.type](job)}
                json.dumps(outcome, allow_nan=False)  # a result that is not JSON is a failure
            except LeaseLost:
                raise
            except Exception as error:
                text = f"{type(error).__name__}: {error}"
                outcome = "fail", {"error": text, "retryable": not isinstance(error, Fatal)}
                if job.stopped.is_set():
                    outcome = "release", {}  # confirms a cancel, if one was requested
            with self.changed:
                mine = self.running.get(job.token) is job
            if mine:
                try:
                    self.report(job, *outcome)
                except RuntimeError as error:  # such as a result over 1 MiB: a retry would not help
                    outcome = "fail", {"error": f"the outcome was refused: {error}"[:2000], "retryable": False}
                    self.report(job, *outcome)
                print(f"{outcome[0]} {job.type} {job.id}", flush=True)
        except LeaseLost:
            print(f"lease lost {job.type} {job.id}", file=sys.stderr)
        except RuntimeError as error:  # refused again; the lease expires
            print(error, file=sys.stderr)
        with self.changed:
            self.running.pop(job.token, None)
            self.changed.notify_all()

    def fetch(self):
        """Leases as many jobs as there are free slots, with a long poll while there are none."""
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
            except (Unavailable, RuntimeError) as error:
                if self.ending.is_set():
                    break
                print(f"cannot lease jobs now: {error}", file=sys.stderr)
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
            for job in jobs:  # too late: other workers can have them
                self.report(job, "release", {})
            if not leases and time.monotonic() - began < 1:
                self.ending.wait(1)  # the server did not wait: do not spin

    def interval(self):
        return min([self.options.heartbeat] + [job.lease_seconds / 3 for job in self.running.values()])

    def beat(self):
        """Sends heartbeats, which extend the leases; reads lease states and the directive from the response."""
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
                body = {"workerId": self.name, "leaseTokens": list(jobs), "freeSlots": free,
                        "draining": self.ending.is_set()}
                answer = self.call("/worker/heartbeat", body, timeout=5)
            except (Unavailable, RuntimeError) as error:
                print(f"heartbeat failed: {error}", file=sys.stderr)
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
        if waiting:  # otherwise it could lease the jobs that are released below
            with contextlib.suppress(OSError):  # it is already closed
                waiting.shutdown(socket.SHUT_RDWR)
        fetch.join(10)
        with self.changed:
            self.changed.wait_for(lambda: not self.running, self.options.drain_timeout)
            for job in self.running.values():
                job.stopped.set()
            self.changed.wait_for(lambda: not self.running, 2)
            rest, self.running = list(self.running.values()), {}
        for job in rest:  # their threads end with the process
            with contextlib.suppress(LeaseLost, Unavailable, RuntimeError):  # continue with the others
                self.call(f"/worker/leases/{job.token}/release", {})
        with self.changed:
            self.gone = True
            self.changed.notify_all()
        beat.join(10)  # a heartbeat after leaving would register the worker again
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
    except (Unavailable, LeaseLost, RuntimeError) as error:
        sys.exit(f"the leases of the remaining jobs will expire: {error}")


if __name__ == "__main__":
    main()
