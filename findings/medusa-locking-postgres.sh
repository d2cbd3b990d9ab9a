#!/usr/bin/env bash
# @medusajs/locking-postgres 2.21.2 (npm, Node.js), acquire(), over PostgreSQL 18.6.
#
# Expected: a lock acquired with `expire` is free for others when that time is over; of two callers that acquire a free lock at
# the same time, one is refused.
# Seen: a lock that has expired stays refused to all other owners, so that of a crashed process stays for ever. Two callers
# that give no ownerId, which is optional, can both acquire: the one whose INSERT comes second finds no owner in the
# row and takes it for its own.
. "$(dirname "$0")/common.sh"

postgres_18
npm install --silent --no-fund --no-audit --ignore-scripts @medusajs/locking-postgres@2.21.2 @medusajs/framework@2.21.2 >npm.log
cat >trial.mjs <<'JS'
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const { MikroORM } = require('@mikro-orm/postgresql') // Medusa's own
const { default: { services: [Provider] } } = require('@medusajs/locking-postgres')
const orm = await MikroORM.init({
  clientUrl: process.env.PGURL, entities: [], discovery: { warnWhenNoEntities: false }, allowGlobalContext: true,
})
await orm.em.execute(`CREATE TABLE locking (id text NOT NULL, owner_id text NULL, expiration timestamptz NULL,
  CONSTRAINT locking_pkey PRIMARY KEY (id))`) // as its migration does
const locks = new Provider({ manager: orm.em, baseRepository: {} })

await locks.acquire('job', { ownerId: 'crashed', expire: 1 })
await new Promise((resolve) => setTimeout(resolve, 5000))
const next = await locks.acquire('job', { ownerId: 'next', expire: 1 }).then(() => 'acquires', (e) => `is refused: ${e.message}`)
console.log('5 s after a lock of 1 s, the next owner', next)

let both = 0
for (let i = 0; i < 200; i++) {
  const outcomes = await Promise.allSettled([locks.acquire(`key ${i}`), locks.acquire(`key ${i}`)])
  both += outcomes.every(({ status }) => status === 'fulfilled')
}
console.log('two callers without an owner have a lock at once:', both > 0)
await orm.close()
JS
PGURL=$PGURL timeout 120 node trial.mjs >seen
compare seen <<'EXPECTED'
5 s after a lock of 1 s, the next owner is refused: Failed to acquire lock for key "job"
two callers without an owner have a lock at once: true
EXPECTED
