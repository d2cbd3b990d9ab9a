#!/usr/bin/env bash
# tooz 9.1.0 (OpenStack, Python), the locks of its PostgreSQL driver, with psycopg2 2.9.13, over PostgreSQL 18.6.
#
# Expected: locks of different names are different locks. An advisory lock has a number of 64 bits, into which a name is hashed.
# Seen: two bytes of the hash are used, so all names share 65 536 numbers: among 302 locks two block each other with a
# probability of one half, among 1 000 nearly always. A process that has one of them and asks for the other waits
# for itself, without an end and without a deadlock that the server could see.
. "$(dirname "$0")/common.sh"

postgres_18
python_packages tooz==9.1.0 psycopg2-binary==2.9.13
cat >trial.py <<'PY'
import os
import warnings

from tooz import coordination

warnings.simplefilter("ignore")  # the driver is deprecated
url = os.environ["PGURL"].split("/postgres?")[0] + "?dbname=postgres"
coordinator = coordination.get_coordinator(url, b"host")
coordinator.start()

locks = [coordinator.get_lock(b"volume-%d" % i) for i in range(1000)]
numbers = {}
for lock in locks:
    numbers.setdefault(lock.key, []).append(lock)
shared = [of_one for of_one in numbers.values() if len(of_one) > 1]
print(f"1000 locks have {len(numbers)} numbers")

one, other = shared[0][:2]
print(f"{one.name.decode()} is acquired: {one.acquire()}")
print(f"  {other.name.decode()}, in the same process: {other.acquire(blocking=False)}")
free = next(lock for lock in locks if lock.key != one.key)
print(f"  {free.name.decode()}: {free.acquire(blocking=False)}")
for lock in one, free:
    lock.release()
print(f"after their release, {other.name.decode()}: {other.acquire(blocking=False)}")
other.release()
coordinator.stop()
PY
PGURL=$PGURL timeout 120 venv/bin/python trial.py >seen
compare seen <<'EXPECTED'
1000 locks have 987 numbers
volume-81 is acquired: True
  volume-866, in the same process: False
  volume-0: True
after their release, volume-866: True
EXPECTED
