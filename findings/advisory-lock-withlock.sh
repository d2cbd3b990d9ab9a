#!/usr/bin/env bash
# advisory-lock 2.0.0 (npm, Node.js, with pg 8.23.1), its command withlock, over PostgreSQL 18.6.
#
# Expected: "make absolutely sure there will never be more than one process active at any given time". So when the session
# that has the lock is lost, as in a restart of the server, or when withlock itself gets a SIGTERM, as in a deployment, the
# command ends, too.
# Seen: withlock ends, in the first case by an error that nothing handles, and its command goes on without a lock. The next withlock
# acquires the lock, and its command runs at the same time.
. "$(dirname "$0")/common.sh"

postgres_18
npm install --silent --no-fund --no-audit --ignore-scripts advisory-lock@2.0.0 pg@8.23.1 >npm.log
cat >job.sh <<'JOB'
while [ ! -e "$1.stop" ]; do
  touch "$1.runs"
  sleep 0.1
done
JOB
cat >lose-session.js <<'JS'
const { Client } = require('pg')
const client = new Client(process.env.PGURL)
client.connect()
  .then(() => client.query("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted"))
  .then(() => client.end())
JS
export PGURL

# runs NAME tells whether that job runs now.
runs() {
  rm -f "$1.runs"
  for _ in $(seq 20); do [ -e "$1.runs" ] && { echo runs; return; }; sleep 0.1; done
  echo "does not run"
}

# trial NAME COMMAND... has two jobs wait for one lock, and executes the command when the first has it.
trial() {
  local name=$1 first second
  shift
  node_modules/.bin/withlock "$name" --db "$PGURL" -- sh job.sh "$name-1" >>withlock.log 2>&1 &
  first=$!
  until_ready test -e "$name-1.runs"
  node_modules/.bin/withlock "$name" --db "$PGURL" -- sh job.sh "$name-2" >>withlock.log 2>&1 &
  second=$!
  sleep 5
  echo "$name, before: the first job $(runs "$name-1"), the second $(runs "$name-2")"
  "$@" "$first"
  wait "$first" || true
  until_ready test -e "$name-2.runs"
  echo "$name, after: the first job $(runs "$name-1"), the second $(runs "$name-2")"
  touch "$name-1.stop" "$name-2.stop"
  wait "$second"
}

lose_session() { node lose-session.js; }
{
  trial session-lost lose_session
  trial SIGTERM kill -TERM
} >seen
compare seen <<'EXPECTED'
session-lost, before: the first job runs, the second does not run
session-lost, after: the first job runs, the second runs
SIGTERM, before: the first job runs, the second does not run
SIGTERM, after: the first job runs, the second runs
EXPECTED
