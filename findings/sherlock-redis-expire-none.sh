#!/usr/bin/env bash
# sherlock 0.4.1 (Python), RedisLock, with redis-py 8.1.0, over Redis 6.2.14.
#
# Expected: a lock with expire=None is held until it is released: "If explicitly set to None, lock will not expire", says
# the documentation.
# Seen: acquire() returns True and the lock is gone at once, so everyone acquires it, and each release raises. The script in Redis
# compares its argument, a string, with the number -1, and then gives the key a time-to-live of -1, which deletes it.
. "$(dirname "$0")/common.sh"

redis_server
python_packages sherlock==0.4.1 redis==8.1.0
cat >trial.py <<'PY'
import os

import redis
import sherlock

client = redis.Redis(port=int(os.environ["REDIS_PORT"]))
for expire in 3600, None:
    holder, rival = (sherlock.RedisLock("job", client=client, expire=expire, timeout=1, retry_interval=0.1) for _ in range(2))
    print(f"expire={expire}: the holder's acquire() returns {holder.acquire()}, then locked() {holder.locked()}")
    try:
        print(f"  a rival's acquire() returns {rival.acquire()}")
    except sherlock.LockTimeoutException:
        print("  a rival's acquire() times out")
    try:
        holder.release()
        print("  the holder's release() succeeds")
    except sherlock.LockException:
        print("  the holder's release() raises LockException")
PY
REDIS_PORT=$REDIS_PORT timeout 60 venv/bin/python trial.py >seen
compare seen <<'EXPECTED'
expire=3600: the holder's acquire() returns True, then locked() True
  a rival's acquire() times out
  the holder's release() succeeds
expire=None: the holder's acquire() returns True, then locked() False
  a rival's acquire() returns True
  the holder's release() raises LockException
EXPECTED
