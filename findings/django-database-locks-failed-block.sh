#!/usr/bin/env bash
# django-database-locks 0.5 (Python), with Django 5.2.19 and psycopg 3.3.9, over PostgreSQL 18.6.
#
# Expected: `with lock(name):` and @locked release the lock at the end of the block, also if it raises an error. At the
# latest the lock is free when its time-to-live is over (lock_ttl, 10 s unless given).
# Seen: after an error the lock is not released, and its thread goes on renewing it for as long as the process lives. Where
# that is a server or a worker which handles the error, all other processes are refused from then on; the process itself
# acquires the lock at once, since its name is the host's and the process's.
. "$(dirname "$0")/common.sh"

postgres_18
python_packages django-database-locks==0.5 django==5.2.19 'psycopg[binary]==3.3.9' setuptools==80.9.0
cat >trial.py <<'PY'
import logging
import os
import subprocess
import sys
import time
from urllib.parse import urlsplit

import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "postgres", "USER": "postgres", "HOST": "127.0.0.1",
                           "PORT": urlsplit(os.environ["PGURL"]).port}},
    INSTALLED_APPS=["database_locks"],
    USE_TZ=True,
)
django.setup()
logging.disable()

from database_locks import locked
from database_locks.locks import LockException
from django.core.management import call_command


@locked("job", lock_ttl=4, retry=None)
def job(error=None):
    time.sleep(0.5)  # the first renewal is over
    if error:
        raise error
    return "runs"


def outcome(error=None):
    try:
        return job(error)
    except LockException:
        return "is refused"
    except ValueError:
        return "fails"


if len(sys.argv) > 1:
    print(outcome())
    sys.exit()
call_command("migrate", verbosity=0)
for error in None, ValueError():
    print(f"the job {outcome(error)}; then in another process")
    for pause in 0, 16:
        time.sleep(pause)
        other = subprocess.check_output([sys.executable, __file__, "other"], text=True).strip()
        print(f"  {'four times the time-to-live later' if pause else 'at once'} the job {other}")
print(f"and in the first process the job {outcome()}")
PY
PGURL=$PGURL timeout 120 venv/bin/python trial.py >seen
compare seen <<'EXPECTED'
the job runs; then in another process
  at once the job runs
  four times the time-to-live later the job runs
the job fails; then in another process
  at once the job is refused
  four times the time-to-live later the job is refused
and in the first process the job runs
EXPECTED
