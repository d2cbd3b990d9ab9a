#!/usr/bin/env bash
# Django 5.2.19 with psycopg 3.3.9, cache.add() with the database cache backend, over PostgreSQL 18.6.
#
# Expected: add() as a lock with a time-to-live, as Celery's cookbook has it with another backend: it stores the value only if the
# key is not there, and returns True "if the value was stored"; of many callers at once, one gets True.
# Seen: that holds for a key that has never been there. If its row is there and has expired, as after a crash of the last
# holder, several callers get True at once: each reads the old row, and updates it whatever it holds by then.
. "$(dirname "$0")/common.sh"

postgres_18
python_packages django==5.2.19 'psycopg[binary]==3.3.9'
cat >trial.py <<'PY'
import os
import threading
import time
from urllib.parse import urlsplit

import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "postgres", "USER": "postgres", "HOST": "127.0.0.1",
                           "PORT": urlsplit(os.environ["PGURL"]).port}},
    CACHES={"default": {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "cache",
                        "OPTIONS": {"MAX_ENTRIES": 100_000}}},
    USE_TZ=True,
)
django.setup()

from django.core.cache import cache
from django.core.management import call_command
from django.db import connection

CALLERS, MINUTES = 8, 1


def winners(keys):
    """adds each key from all callers at once, until several have added one, and returns the most that did"""
    start = threading.Barrier(CALLERS)
    added = {key: [] for key in keys}

    def caller():
        for key in keys:
            start.wait(60)
            if cache.add(key, "holder", 3600):
                added[key].append(1)
        connection.close()

    threads = [threading.Thread(target=caller) for _ in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return max(map(len, added.values()))


call_command("createcachetable")
print("new keys: several callers add one:", winners([f"new-{i}" for i in range(300)]) > 1)
several, end = False, time.monotonic() + 60 * MINUTES
while not several and time.monotonic() < end:
    expired = [f"expired-{i}" for i in range(300)]
    for key in expired:
        cache.set(key, "crashed", 1)
    time.sleep(3)
    several = winners(expired) > 1
print("expired keys: several callers add one:", several)
PY
PGURL=$PGURL timeout 300 venv/bin/python trial.py >seen
compare seen <<'EXPECTED'
new keys: several callers add one: False
expired keys: several callers add one: True
EXPECTED
