#!/usr/bin/env bash
# PALs 0.4.0 (Python, advisory locks of PostgreSQL), with SQLAlchemy 2.1.9, over psycopg 3.3.9 and psycopg2 2.9.13, and
# PostgreSQL 18.6.
#
# Expected: a released lock leaves an idle connection in PALs' own pool, which the next lock uses.
# Seen: the connection is left in a transaction, which PALs begins while it returns the connection to the pool. Where the
# server ends such sessions (idle_in_transaction_session_timeout), each lock after such a pause fails with the
# driver's error, acquired by nobody; the one after it succeeds.
. "$(dirname "$0")/common.sh"

postgres_18 -c idle_in_transaction_session_timeout=1s
python_packages PALs==0.4.0 sqlalchemy==2.1.9 'psycopg[binary]==3.3.9' psycopg2-binary==2.9.13
cat >trial.py <<'PY'
import os
import time

import pals
import psycopg
import sqlalchemy


def sessions():
    with psycopg.connect(os.environ["PGURL"]) as connection:
        return connection.execute("SELECT state FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()").fetchall()


def ended():
    for _ in range(600):
        if not sessions():
            return
        time.sleep(0.1)


def lock(locker):
    try:
        with locker.lock("job"):
            return "acquired"
    except sqlalchemy.exc.DBAPIError as error:
        return f"a database error, by its class in SQLAlchemy {type(error).__name__}"


for driver in "psycopg", "psycopg2":
    locker = pals.Locker("app", os.environ["PGURL"].split("?")[0].replace("postgresql:", f"postgresql+{driver}:"))
    print(f"{driver}: {lock(locker)}; after its release its session is {sessions()[0][0]}")
    ended()
    print("  when the server has ended that session:", lock(locker))
    print("  once more:", lock(locker))
    ended()
PY
PGCLIENTENCODING=utf8 PGURL=$PGURL timeout 120 venv/bin/python trial.py >seen
compare seen <<'EXPECTED'
psycopg: acquired; after its release its session is idle in transaction
  when the server has ended that session: a database error, by its class in SQLAlchemy InternalError
  once more: acquired
psycopg2: acquired; after its release its session is idle in transaction
  when the server has ended that session: a database error, by its class in SQLAlchemy OperationalError
  once more: acquired
EXPECTED
