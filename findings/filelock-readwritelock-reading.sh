#!/usr/bin/env bash
# filelock 4.3.1 (Python), ReadWriteLock, which keeps its locks in an SQLite file; Linux.
#
# Expected: reading the lock's file, as a backup or a checksum in the same program does, changes nothing: with FileLock
# (flock) it does not.
# Seen: closing any descriptor of that file drops the POSIX locks of the whole process. The holder goes on believing that
# it holds the write lock, a second process acquires it, and the holder's release reports nothing.
. "$(dirname "$0")/common.sh"

python_packages filelock==4.3.1
cat >trial.py <<'PY'
import subprocess
import sys
from pathlib import Path

from filelock import FileLock, ReadWriteLock

RIVAL = """
import sys
from filelock import FileLock, ReadWriteLock, Timeout
try:
    if sys.argv[1] == "FileLock":
        FileLock(sys.argv[2]).acquire(timeout=1)
    else:
        ReadWriteLock(sys.argv[2]).acquire_write(timeout=1)
    print("acquires it, too")
except Timeout:
    print("times out")
"""


def rival(kind, path):
    return subprocess.run([sys.executable, "-c", RIVAL, kind, path], capture_output=True, text=True, check=True).stdout.strip()


for kind in "FileLock", "ReadWriteLock":
    path = str(Path(f"{kind}.lock").resolve())
    lock = FileLock(path) if kind == "FileLock" else ReadWriteLock(path)
    lock.acquire() if kind == "FileLock" else lock.acquire_write()
    print(f"{kind} is held: a rival {rival(kind, path)}")
    Path(path).read_bytes()
    print(f"{kind}, after its file was read: a rival {rival(kind, path)}")
    lock.release()
    print(f"{kind}: the holder's release succeeds")
PY
timeout 120 venv/bin/python trial.py >seen
compare seen <<'EXPECTED'
FileLock is held: a rival times out
FileLock, after its file was read: a rival times out
FileLock: the holder's release succeeds
ReadWriteLock is held: a rival times out
ReadWriteLock, after its file was read: a rival acquires it, too
ReadWriteLock: the holder's release succeeds
EXPECTED
