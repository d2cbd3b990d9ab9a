#!/usr/bin/env bash
# django-pglock 1.8.0 (Python), @pglock.advisory as a decorator, with Django 5.2.19 and psycopg 3.3.9, over PostgreSQL 18.6.
#
# Expected: a decorated function can be called by several threads, as those of a web server are; each call releases the lock
# that it has acquired, and a call that is refused leaves the holder's alone.
# Seen: the decorator keeps the outcome of the last call for all of them. When one thread was refused (Skip) while another
# had the lock, the holder's call ends without releasing it. It stays with that thread's connection, which Django keeps
# open, so all other threads and processes are refused from then on, and no error says so.
. "$(dirname "$0")/common.sh"

postgres_18
python_packages django-pglock==1.8.0 django==5.2.19 'psycopg[binary]==3.3.9'
cat >trial.py <<'PY'
import os
import threading
from urllib.parse import urlsplit

import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "postgres", "USER": "postgres", "HOST": "127.0.0.1",
                           "PORT": urlsplit(os.environ["PGURL"]).port}},
    INSTALLED_APPS=["pgactivity", "pglock"],
)
django.setup()

import pglock
from django.db import connection


def trial(refused_in_between):
    inside, leave, over, look = (threading.Event() for _ in range(4))

    @pglock.advisory("job", timeout=0, side_effect=pglock.Skip)
    def job():
        inside.set()
        leave.wait(60)
        return "runs"

    def thread(then):
        def run():
            outcome = job()
            print(f"  {threading.current_thread().name} {outcome or 'is skipped'}")
            then()
            connection.close()
        return run

    def locks():
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()")
            print(f"  the holder's connection has {cursor.fetchone()[0]} locks after the call")
        over.set()
        look.wait(60)

    holder = threading.Thread(target=thread(locks), name="the holder")
    holder.start()
    inside.wait(60)
    if refused_in_between:
        other = threading.Thread(target=thread(lambda: None), name="another thread")
        other.start()
        other.join()
    leave.set()
    over.wait(60)
    later = threading.Thread(target=thread(lambda: None), name="a later call")
    later.start()
    later.join()
    look.set()
    holder.join()


for refused in False, True:
    print("a call is refused while the lock is held:" if refused else "no call is refused:", flush=True)
    trial(refused)
PY
PGURL=$PGURL timeout 120 venv/bin/python trial.py >seen
compare seen <<'EXPECTED'
no call is refused:
  the holder runs
  the holder's connection has 0 locks after the call
  a later call runs
a call is refused while the lock is held:
  another thread is skipped
  the holder runs
  the holder's connection has 1 locks after the call
  a later call is skipped
EXPECTED
