#!/usr/bin/env bash
# MariaDB 11.4.5, a unique key WITHOUT OVERLAPS (application-time periods, InnoDB), with PyMySQL 1.2.4: bookings of rooms.
#
# Expected: a unique key holds at every isolation level: of sessions that book a room for overlapping times at once, one
# succeeds.
# Seen at READ COMMITTED: two single-row INSERTs with autocommit can both succeed, and the table has two rows for the room whose
# periods overlap. Each looks for neighbours before it writes, and locks no gap. At REPEATABLE READ and SERIALIZABLE the key
# holds, and some of the sessions get a deadlock (1213) instead of a duplicate key (1062).
. "$(dirname "$0")/common.sh"

mariadb_server 11.4.5
python_packages pymysql==1.2.4
cat >trial.py <<'PY'
import os
import threading
import time

import pymysql

SESSIONS, ROOMS, SECONDS = 6, 200, 100
OVERLAPPING = """SELECT count(*) FROM booking a JOIN booking b ON a.room = b.room AND a.who < b.who
  AND a.arrival < b.departure AND b.arrival < a.departure"""


def connect(level):
    connection = pymysql.connect(host="127.0.0.1", port=int(os.environ["MARIADB_PORT"]), user="root", database="test", autocommit=True)
    cursor = connection.cursor()
    cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
    return cursor


def book(level, codes):
    """books each room from all sessions at once, for periods that overlap"""
    start = threading.Barrier(SESSIONS)

    def session(who):
        cursor = connect(level)
        for room in range(ROOMS):
            start.wait(60)
            try:
                cursor.execute("INSERT INTO booking VALUES (%s, %s, '2026-12-31', %s)", (room, f"2026-12-0{who + 1}", who))
            except pymysql.MySQLError as e:
                codes.add(e.args[0])

    threads = [threading.Thread(target=session, args=(who,)) for who in range(SESSIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


for level in "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE":
    end = time.monotonic() + (SECONDS if level == "READ COMMITTED" else 5)
    overlapping, codes = 0, set()
    while not overlapping and time.monotonic() < end:
        cursor = connect(level)
        cursor.execute("DROP TABLE IF EXISTS booking")
        cursor.execute("""CREATE TABLE booking (room INT, arrival DATE, departure DATE, who INT, PERIOD FOR stay (arrival, departure),
          UNIQUE (room, stay WITHOUT OVERLAPS)) ENGINE=InnoDB""")
        book(level, codes)
        cursor.execute(OVERLAPPING)
        overlapping = cursor.fetchone()[0]
    print(f"{level}: overlapping bookings: {overlapping > 0}, deadlocks: {1213 in codes}, other errors: {sorted(codes - {1062, 1213})}")
PY
MARIADB_PORT=$MARIADB_PORT timeout 200 venv/bin/python trial.py >seen
compare seen <<'EXPECTED'
READ COMMITTED: overlapping bookings: True, deadlocks: False, other errors: []
REPEATABLE READ: overlapping bookings: False, deadlocks: True, other errors: []
SERIALIZABLE: overlapping bookings: False, deadlocks: True, other errors: []
EXPECTED
