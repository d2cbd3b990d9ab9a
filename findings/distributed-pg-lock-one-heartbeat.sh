#!/usr/bin/env bash
# distributed-pg-lock 0.1.2 (Python) with SQLAlchemy 2.1.9 and psycopg2 2.9.13, over PostgreSQL 18.6.
#
# Expected: the heartbeat keeps a lock for as long as its block runs ("prevents premature lock expiration for long
# operations"). It comes each 20 s, and a lock of one minute outlasts two that fail: a server that is restarted in a few
# seconds costs no lock.
# Seen: a heartbeat that meets the server while it is down ends the thread that sends them, and nothing starts it again. The lock
# lasts for the rest of its minute, then another process has it, while the block of the first one runs. Its is_acquired says
# so only then; nothing tells it before.
. "$(dirname "$0")/common.sh"

postgres_18
python_packages distributed-pg-lock==0.1.2 SQLAlchemy==2.1.9 psycopg2-binary==2.9.13
cat >trial.py <<'PY'
import logging
import os
import signal
import subprocess
import threading
import time

from distributed_pg_lock import DistributedLockManager, db

logging.disable(logging.CRITICAL)
threading.excepthook = lambda failed: print(f"  the heartbeat's thread has ended with {failed.exc_type.__name__}")

db.initialize(os.environ["PGURL"])
db.create_tables()
job, rival = DistributedLockManager(lock_timeout_minutes=1), DistributedLockManager(lock_timeout_minutes=1)


def down_at_the_heartbeat(restarted):
    """The server is down from 18 to 22 s after now, if it is restarted."""
    time.sleep(18)
    if restarted:
        subprocess.run(["./stop"], check=True, stdout=subprocess.DEVNULL)
    time.sleep(4)
    if restarted:
        subprocess.run(["./start"], check=True, stdout=subprocess.DEVNULL)


for restarted in False, True:
    print(f"the server is {'restarted' if restarted else 'not touched'}")
    lock = job.get_lock("nightly")
    lock.acquire()
    down_at_the_heartbeat(restarted)
    print(f"  the holder's is_acquired: {lock.is_acquired}, its heartbeat lives: {job.health_check()['heartbeats']['nightly']}")
    time.sleep(65 - 22)
    other = rival.get_lock("nightly")
    print(f"  65 s after the start of its block, another process acquires the lock: {other.acquire()}")
    print(f"  the holder's is_acquired: {lock.is_acquired}")
    other.release()
    lock.release()
PY
as=()
[ "$(id -u)" = 0 ] && as=(setpriv --reuid=nobody --clear-groups)
port=${PGURL##*:} && port=${port%%/*}
cat >stop <<STOP
#!/bin/sh
exec ${as[*]} "$PGBIN/pg_ctl" -D "$work/pgdata" -m fast -w stop
STOP
cat >start <<START
#!/bin/sh
exec ${as[*]} "$PGBIN/pg_ctl" -D "$work/pgdata" -w -l "$work/pgdata/restarted.log" -o "-k '' -h 127.0.0.1 -p $port -c fsync=off" start
START
chmod +x stop start
PGURL=${PGURL/postgresql:/postgresql+psycopg2:} timeout 300 venv/bin/python trial.py >seen || { cat seen; exit 1; }
./stop >/dev/null
compare seen <<'EXPECTED'
the server is not touched
  the holder's is_acquired: True, its heartbeat lives: True
  65 s after the start of its block, another process acquires the lock: False
  the holder's is_acquired: True
the server is restarted
  the heartbeat's thread has ended with OperationalError
  the holder's is_acquired: True, its heartbeat lives: False
  65 s after the start of its block, another process acquires the lock: True
  the holder's is_acquired: False
EXPECTED
