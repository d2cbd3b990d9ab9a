#!/usr/bin/env bash
# Kysely 0.28.19 (npm, Node.js), Migrator, over SQLite (libsql 0.5.29 in place of better-sqlite3).
#
# Expected: if an instance of a program starts while another one migrates, it waits: the adapter's acquireMigrationLock is there
# "so that it's not possible for two migration operations to run in parallel".
# Seen: on SQLite it does nothing, although two processes can open a file, and a migration is no transaction. The second instance
# executes the migration, too, so that here each amount is multiplied twice. The one that ends last then fails at the list of
# migrations, and what it has changed stays.
. "$(dirname "$0")/common.sh"

npm install --silent --no-fund --no-audit --ignore-scripts kysely@0.28.19 libsql@0.5.29 >npm.log
cat >instance.mjs <<'JS'
import { createRequire } from 'node:module'
import { existsSync, writeFileSync } from 'node:fs'
import { Kysely, Migrator, SqliteDialect, sql } from 'kysely'

const Database = createRequire(import.meta.url)('libsql')
const [name, other] = process.argv.slice(2)
const db = new Kysely({ dialect: new SqliteDialect({ database: new Database('app.db', { timeout: 5000 }) }) })
const migrations = {
  '1 accounts': {
    up: async (db) => {
      await sql`CREATE TABLE account (id INTEGER PRIMARY KEY, amount INTEGER)`.execute(db)
      await sql`INSERT INTO account VALUES (1, 5)`.execute(db)
    },
  },
  '2 cents': {
    up: async (db) => {
      writeFileSync(`${name}.migrates`, '')
      // a slow step; here until the other instance migrates, too, or half a minute has passed
      for (let i = 0; i < 300 && !existsSync(`${other}.migrates`); i++) await new Promise((done) => setTimeout(done, 100))
      await sql`UPDATE account SET amount = amount * 100`.execute(db)
    },
  },
}
const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } })
if (name === 'before') {
  await migrator.migrateTo('1 accounts')
} else {
  const { error } = await migrator.migrateToLatest()
  writeFileSync(`${name}.outcome`, error ? `fails: ${error.message}\n` : 'succeeds\n')
}
await db.destroy()
JS
timeout 60 node instance.mjs before
timeout 120 node instance.mjs one two >one.log 2>&1 &
first=$!
until_ready test -e one.migrates
timeout 120 node instance.mjs two one >two.log 2>&1
wait "$first"
{
  sed 's/^/an instance /' one.outcome two.outcome | sort
  echo "an amount of 5, after one migration to cents: $(node -e "console.log(new (require('libsql'))('app.db').prepare('SELECT amount FROM account').get().amount)")"
} >seen
compare seen <<'EXPECTED'
an instance fails: UNIQUE constraint failed: kysely_migration.name
an instance succeeds
an amount of 5, after one migration to cents: 50000
EXPECTED
