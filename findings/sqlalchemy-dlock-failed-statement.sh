#!/usr/bin/env bash
# sqlalchemy-dlock 0.9.0 (Python), with SQLAlchemy 2.1.9 and psycopg 3.3.9, over PostgreSQL 18.6.
#
# Expected: `with create_sadlock(connection, key):` releases its advisory lock at the end of the block, as its documentation says
# ("release will be called when the block is exited"), also if the block ends with an error of the database.
# Seen: after an error of a statement on that connection the release fails too, since it is sent in the aborted transaction,
# and its error takes the place of the first one. The connection goes back to SQLAlchemy's pool with the lock, which its
# rollback does not release: all other processes are refused for as long as the pool lives, while this process
# goes on acquiring and releasing it.
. "$(dirname "$0")/common.sh"

postgres_18
python_packages sqlalchemy-dlock==0.9.0 sqlalchemy==2.1.9 'psycopg[binary]==3.3.9'
cat >trial.py <<'PY'
import os
import subprocess
import sys

import sqlalchemy
from sqlalchemy_dlock import create_sadlock

engine = sqlalchemy.create_engine(os.environ["PGURL"].split("?")[0].replace("postgresql:", "postgresql+psycopg:"))


def job(statement):
    try:
        with engine.connect() as connection, create_sadlock(connection, "job", contextual_timeout=0):
            connection.execute(sqlalchemy.text(statement))
            return "runs"
    except TimeoutError:
        return "is refused"
    except sqlalchemy.exc.DBAPIError as error:
        return f"fails with {type(error.orig).__name__}"


if len(sys.argv) > 1:
    print(job("SELECT 1"))
    sys.exit()
for name, statement in ("without an error", "SELECT 1"), ("with an error", "SELECT 1/0"):
    print(f"{name}, the job {job(statement)}; then")
    print("  in this process the job", job("SELECT 1"))
    print("  in another process the job", subprocess.check_output([sys.executable, __file__, "other"], text=True).strip())
PY
PGCLIENTENCODING=utf8 PGURL=$PGURL timeout 120 venv/bin/python trial.py >seen
compare seen <<'EXPECTED'
without an error, the job runs; then
  in this process the job runs
  in another process the job runs
with an error, the job fails with InFailedSqlTransaction; then
  in this process the job runs
  in another process the job is refused
EXPECTED
