#!/usr/bin/env bash
# mysql2 3.24.6 (npm, Node.js), a pool, over MariaDB 10.11.5.
#
# Expected: a query with `timeout` that has failed with PROTOCOL_SEQUENCE_TIMEOUT takes no effect any more, or its
# connection leaves the pool, as node-postgres's does after a query_timeout.
# Seen: GET_LOCK goes on waiting on the server. The connection stays in the pool, and gets the lock when the holder releases
# it: the caller has been told that it failed, no code has a handle to release it, and all others are refused for as long
# as the pool keeps the connection.
. "$(dirname "$0")/common.sh"

mariadb_server 10.11.5
npm install --silent --no-fund --no-audit mysql2@3.24.6 >npm.log
cat >trial.mjs <<'JS'
import mysql from 'mysql2/promise'

const server = { host: '127.0.0.1', port: Number(process.env.MARIADB_PORT), user: 'root' }
const holder = await mysql.createConnection(server)
await holder.query("SELECT GET_LOCK('job', 0)")

const pool = mysql.createPool({ ...server, connectionLimit: 1 })
try {
  await pool.query({ sql: "SELECT GET_LOCK('job', 60)", timeout: 1000 })
} catch (error) {
  console.log('the waiter:', error.code)
}
await holder.query("SELECT RELEASE_LOCK('job')")
const [[rival]] = await holder.query("SELECT GET_LOCK('job', 2) AS got, IS_USED_LOCK('job') AS owner")
const [[next]] = await pool.query('SELECT CONNECTION_ID() AS id')
console.log('a rival, after the release:', rival.got === 1 ? 'gets the lock' : 'is refused')
console.log('the owner is the connection of the pool:', rival.owner === next.id)
await pool.end()
await holder.end()
JS
MARIADB_PORT=$MARIADB_PORT timeout 60 node trial.mjs >seen
compare seen <<'EXPECTED'
the waiter: PROTOCOL_SEQUENCE_TIMEOUT
a rival, after the release: is refused
the owner is the connection of the pool: true
EXPECTED
