package sqltext

import (
	"strings"

	"github.com/sqllock/sqllock/dialect"
)

// upsertReturning is the acquire statement of databases that know ON CONFLICT and
// RETURNING. It returns a row exactly if the lock was acquired. It draws the token while
// the row is locked, so the tokens of a key are in the order of its holders.
//
// The statement reads only the row itself, through the primary key: under SERIALIZABLE,
// other reads cause serialization failures (internal/locktable/README.md has the measurements). DO
// UPDATE computes the times again, after it has waited for a row that another transaction
// was changing, so the lease always gets its full length.
var upsertReturning = map[dialect.Layout]string{
	dialect.Spring7: `INSERT INTO {table} AS held (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER)
SELECT :region, :key, :holder, {now}, {end} {lockTimeout.select}
ON CONFLICT (LOCK_KEY, REGION) DO UPDATE
SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = {now}, EXPIRED_AFTER = {end}
WHERE held.CLIENT_ID = EXCLUDED.CLIENT_ID OR {held.expired}
RETURNING {token}`,
	dialect.Spring6: `INSERT INTO {table} AS held (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE)
SELECT :region, :key, :holder, {now} {lockTimeout.select}
ON CONFLICT (LOCK_KEY, REGION) DO UPDATE
SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = {now}
WHERE held.CLIENT_ID = EXCLUDED.CLIENT_ID OR {held.expired}
RETURNING {token}`,
}

// upsertAll is upsertReturning for several rows, {rows}. Each lease lasts for the
// difference of its two proposed times. {row.now} may be one instant for all rows:
// holders measure their leases from before the statement was sent.
var upsertAll = map[dialect.Layout]string{
	dialect.Spring7: `INSERT INTO {table} AS held (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER)
SELECT :region, {row.key}, {row.holder}, {row.now}, {row.end} {rows}
ON CONFLICT (LOCK_KEY, REGION) DO UPDATE
SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = {now}, EXPIRED_AFTER = {row.again}
WHERE held.CLIENT_ID = EXCLUDED.CLIENT_ID OR {held.expired}
RETURNING LOCK_KEY, {token}`,
	dialect.Spring6: `INSERT INTO {table} AS held (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE)
SELECT :region, {row.key}, {row.holder}, {row.now} {rows}
ON CONFLICT (LOCK_KEY, REGION) DO UPDATE
SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = {now}
WHERE held.CLIENT_ID = EXCLUDED.CLIENT_ID OR {held.expired}
RETURNING LOCK_KEY, {token}`,
}

// filled replaces placeholders, given in pairs with the text of a database, in all texts.
func filled(texts map[dialect.Layout]string, names ...string) map[dialect.Layout]string {
	all := make(map[dialect.Layout]string, len(texts))
	for layout, text := range texts {
		all[layout] = strings.NewReplacer(names...).Replace(text)
	}
	return all
}
