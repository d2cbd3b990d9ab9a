#!/usr/bin/env bash
# redis-py 8.1.0 (Python), redis.asyncio's Lock, over Redis 6.2.14.
#
# Expected: a Lock object that several tasks share releases only what its caller holds. Its documentation says so of
# thread_local, which is on by default: each caller keeps its own token, lest one whose lock has timed out release
# that of the next.
# Seen: tasks share a thread, so they share the token. The release of a task that comes too late reports success, and
# deletes the lock of the next holder, which is still at work. With redis.Lock and threads, the late release raises a
# LockError and the next holder keeps its lock.
. "$(dirname "$0")/common.sh"

redis_server
python_packages redis==8.1.0
cat >trial.py <<'PY'
import asyncio
import os
import threading
import time

import redis
import redis.asyncio
from redis.exceptions import LockError

port = int(os.environ["REDIS_PORT"])


def report(kind, late, kept):
    print(f"{kind}: the late release {late}, the next holder {'keeps its lock' if kept else 'has lost its lock'}")


def with_threads():
    client = redis.Redis(port=port)
    lock = client.lock("threads", timeout=1)
    late, expired, taken = [], threading.Event(), threading.Event()

    def first():
        lock.acquire()
        expired.set()
        taken.wait(60)
        try:
            lock.release()
            late.append("succeeds")
        except LockError:
            late.append("is refused")

    thread = threading.Thread(target=first)
    thread.start()
    expired.wait(60)
    time.sleep(2)
    lock.timeout = 60
    assert lock.acquire(blocking=False)
    taken.set()
    thread.join()
    report("threads", late[0], lock.owned())


async def with_tasks():
    client = redis.asyncio.Redis(port=port)
    lock = client.lock("tasks", timeout=1)
    taken = asyncio.Event()

    async def first():
        await lock.acquire()
        await taken.wait()
        try:
            await lock.release()
            return "succeeds"
        except LockError:
            return "is refused"

    task = asyncio.create_task(first())
    await asyncio.sleep(2)
    lock.timeout = 60
    assert await lock.acquire(blocking=False)
    taken.set()
    late = await task
    report("tasks", late, await client.exists("tasks"))
    await client.aclose()


with_threads()
asyncio.run(with_tasks())
PY
REDIS_PORT=$REDIS_PORT timeout 60 venv/bin/python trial.py >seen
compare seen <<'EXPECTED'
threads: the late release is refused, the next holder keeps its lock
tasks: the late release succeeds, the next holder has lost its lock
EXPECTED
