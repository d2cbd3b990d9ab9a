#!/usr/bin/env bash
# SAQ 0.26.4 (Python, a job queue) on PostgreSQL 18.6, over psycopg 3.3.9.
#
# Expected: connect creates or migrates SAQ's tables, and has them ready when it returns.
# Seen: it takes an advisory lock of the session for that, which it never releases, and does nothing if another
# session has it. So of several instances that start at once on an empty database some have no table yet. And an instance of a
# new version migrates nothing while one of an old version runs, as in a rolling update (here from 0.19.0): it works with
# the old tables, and lacks a column, until it is started again after the last old one has ended.
. "$(dirname "$0")/common.sh"

postgres_18
python_packages saq==0.26.4 'psycopg[binary]==3.3.9' psycopg-pool==3.3.3
mkdir old
(cd old && python_packages saq==0.19.0 'psycopg[binary]==3.3.9' psycopg-pool==3.3.3)

cat >together.py <<'PY'
import asyncio
import sys

from psycopg.errors import UndefinedTable
from saq import Queue


async def can_enqueue(queue):
    try:
        await queue.connect()
        await queue.enqueue("job")
        return True
    except UndefinedTable:
        return False


async def main():
    queues = [Queue.from_url(sys.argv[1]) for _ in range(4)]
    got = await asyncio.gather(*map(can_enqueue, queues))
    print("four start at once on an empty database, each can enqueue a job:", all(got))
    for queue in queues:
        await queue.disconnect()


asyncio.run(main())
PY
cat >one.py <<'PY'
import asyncio
import sys
from importlib.metadata import version

from psycopg.errors import UndefinedColumn
from saq import Queue


async def main():
    queue = Queue.from_url(sys.argv[1])
    await queue.connect()
    if sys.argv[2] == "stay":
        print("up", flush=True)
        await asyncio.sleep(120)
    try:
        await queue.info()
        print(f"{version('saq')}, {sys.argv[2]}: it works")
    except UndefinedColumn as e:
        print(f"{version('saq')}, {sys.argv[2]}: {e.diag.message_primary}")
    await queue.disconnect()


asyncio.run(main())
PY
timeout 60 venv/bin/python together.py "$PGURL" >seen 2>errors || { cat errors; exit 1; }
"$PGBIN/psql" -q "$PGURL" -c 'DROP SCHEMA public CASCADE' -c 'CREATE SCHEMA public' 2>psql.log
old/venv/bin/python one.py "$PGURL" stay >stays 2>&1 &
servers+=($!)
until_ready grep up stays
timeout 60 venv/bin/python one.py "$PGURL" 'beside 0.19.0' >>seen 2>errors || { cat errors; exit 1; }
kill "${servers[-1]}"
wait "${servers[-1]}" || true
timeout 60 venv/bin/python one.py "$PGURL" 'alone' >>seen 2>errors || { cat errors; exit 1; }
compare seen <<'EXPECTED'
four start at once on an empty database, each can enqueue a job: False
0.26.4, beside 0.19.0: column "queue_key" does not exist
0.26.4, alone: it works
EXPECTED
