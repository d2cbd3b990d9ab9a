#!/usr/bin/env bash
# dramatiq 2.2.1 (Python), ConcurrentRateLimiter with its RedisBackend, over redis-py 8.1.0 and Redis 6.2.14.
#
# Expected: a permit of a worker that was killed is free again after ttl, 15 minutes by default: "The time in milliseconds
# that keys may live for", says its documentation.
# Seen: the key is a count of all permits, and each permit that others acquire or release starts its time-to-live anew. While
# the limiter is used more often than that, the permit stays lost: of two that may work at once, one is left. It comes
# back only after nobody has got or given back a permit for all of the ttl. (With limit=1 nobody can, so a mutex is free after the ttl.)
. "$(dirname "$0")/common.sh"

redis_server
python_packages dramatiq==2.2.1 redis==8.1.0
cat >trial.py <<'PY'
import os
import subprocess
import sys
import time

import redis
from dramatiq.rate_limits import ConcurrentRateLimiter
from dramatiq.rate_limits.backends import RedisBackend

backend = RedisBackend(client=redis.Redis(port=int(os.environ["REDIS_PORT"])))
TTL = 2  # seconds


def limiter(limit):
    return ConcurrentRateLimiter(backend, f"reports-{limit}", limit=limit, ttl=TTL * 1000)


def killed_worker(limit):
    worker = subprocess.Popen([sys.executable, __file__, str(limit)], stdout=subprocess.PIPE)
    worker.stdout.readline()
    worker.kill()
    worker.wait()


def at_once(limit):
    """How many get a permit at once."""
    with limiter(limit).acquire(raise_on_failure=False) as first, limiter(limit).acquire(raise_on_failure=False) as second:
        return first + second


if len(sys.argv) > 1:
    with limiter(int(sys.argv[1])).acquire():
        print("at work", flush=True)
        time.sleep(60)

print("limit 2, before:", at_once(2))
killed_worker(2)
killed = time.monotonic()
while time.monotonic() < killed + 5 * TTL:
    with limiter(2).acquire():
        time.sleep(TTL / 10)
print("limit 2, in use, five times the ttl after a worker was killed:", at_once(2))
time.sleep(2 * TTL)
print("limit 2, after a pause of twice the ttl:", at_once(2))

killed_worker(1)
killed = time.monotonic()
while time.monotonic() < killed + 2 * TTL:
    with limiter(1).acquire(raise_on_failure=False) as got:
        if got:
            break
    time.sleep(TTL / 10)
print("limit 1, free within twice the ttl after a worker was killed:", got)
PY
REDIS_PORT=$REDIS_PORT timeout 120 venv/bin/python trial.py >seen
compare seen <<'EXPECTED'
limit 2, before: 2
limit 2, in use, five times the ttl after a worker was killed: 1
limit 2, after a pause of twice the ttl: 2
limit 1, free within twice the ttl after a worker was killed: True
EXPECTED
