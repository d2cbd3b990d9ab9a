package dialect

import "strings"

// upsertReturning is the acquire statement of databases that know ON CONFLICT
// and RETURNING. It answers a row exactly when the lock was acquired. Tokens are
// drawn there, while the row is held, so those of one key are in its holders'
// order.
//
// Nothing but the row itself is read, and only through the primary key:
// SERIALIZABLE punishes reads (docs/design.md has the measurements). The
// times are computed again in DO UPDATE, after the wait for a row that
// somebody else is changing, so a lease is never born short.
var upsertReturning = map[Layout]string{
	Spring7: `INSERT INTO {table} AS held (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER)
SELECT :region, :key, :holder, {now}, {end} {patient.select}
ON CONFLICT (LOCK_KEY, REGION) DO UPDATE
SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = {now}, EXPIRED_AFTER = {end}
WHERE held.CLIENT_ID = EXCLUDED.CLIENT_ID OR {held.expired}
RETURNING {token}`,
	Spring6: `INSERT INTO {table} AS held (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE)
SELECT :region, :key, :holder, {now} {patient.select}
ON CONFLICT (LOCK_KEY, REGION) DO UPDATE
SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = {now}
WHERE held.CLIENT_ID = EXCLUDED.CLIENT_ID OR {held.expired}
RETURNING {token}`,
}

// upsertAll is upsertReturning for many rows, {rows}. How long each is to last is the
// difference of the two times that were proposed, and {row.now} may be one instant for
// all: holders count from before the statement was sent.
var upsertAll = map[Layout]string{
	Spring7: `INSERT INTO {table} AS held (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER)
SELECT :region, {row.key}, {row.holder}, {row.now}, {row.end} {rows}
ON CONFLICT (LOCK_KEY, REGION) DO UPDATE
SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = {now}, EXPIRED_AFTER = {row.again}
WHERE held.CLIENT_ID = EXCLUDED.CLIENT_ID OR {held.expired}
RETURNING LOCK_KEY, {token}`,
	Spring6: `INSERT INTO {table} AS held (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE)
SELECT :region, {row.key}, {row.holder}, {row.now} {rows}
ON CONFLICT (LOCK_KEY, REGION) DO UPDATE
SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = {now}
WHERE held.CLIENT_ID = EXCLUDED.CLIENT_ID OR {held.expired}
RETURNING LOCK_KEY, {token}`,
}

// filled puts what a database has for them into the names that begin with row.
func filled(texts map[Layout]string, names ...string) map[Layout]string {
	all := make(map[Layout]string, len(texts))
	for layout, text := range texts {
		all[layout] = strings.NewReplacer(names...).Replace(text)
	}
	return all
}
