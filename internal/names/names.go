package names

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/sqllock/sqllock/internal/clientid"
	"github.com/sqllock/sqllock/internal/stmt"
)

const (
	// NamedAfter is how long a lock is held, or waited for, before its name is written. The holders of younger rows
	// are not asked for.
	NamedAfter = time.Second
	// MaxNames is how many names one statement writes at most, and maxIDs how many one asks for: for more it reads
	// all names.
	MaxNames, maxIDs = 100, 5000
)

// Write writes at most [MaxNames] names: those of keys by LOCK_KEY, and what this process calls itself unless that is
// ""; and with that, or if there is something new, what was noted of its leases. It reports whether it has.
func (t *Table) Write(ctx context.Context, keys map[string]string, process string) bool {
	rows := keyRows(keys)
	if process != "" {
		rows = append(rows, stmt.Claim{LockKey: processID + t.client, Holder: encode(process)})
	}
	news := t.leases.hasUnwritten()
	if news || process != "" {
		rows = append(rows, stmt.Claim{LockKey: ttlID + t.client, Holder: t.leases.take()})
	}
	written := t.write(ctx, rows)
	if news && !written {
		t.leases.putBack()
	}
	return written
}

// keyRows returns the rows that name keys, by LOCK_KEY.
func keyRows(keys map[string]string) []stmt.Claim {
	rows := make([]stmt.Claim, 0, len(keys)+2)
	for lockKey, key := range keys {
		rows = append(rows, stmt.Claim{LockKey: keyID + lockKey, Holder: encode(key)})
	}
	return rows
}

// DeleteOld deletes some names that have not been written for a day, of every region, and reports whether there may be
// more.
func (t *Table) DeleteOld(ctx context.Context) (more bool) {
	deleted, _ := send(ctx, &t.deleting, timeout, func(ctx context.Context, db stmt.Executor) (int64, error) {
		old, err := stmt.SelectTexts(ctx, db, t.statements.old, stmt.Values{})
		if err != nil || len(old) == 0 {
			return 0, err
		}
		return stmt.Exec(ctx, db, t.statements.delete, stmt.Values{Keys: old})
	})
	return deleted > 0
}

// Names are names that were read.
type Names struct {
	texts map[nameID]string
}

type nameID struct{ region, id string }

// Key returns the key of a row as its user wrote it, or "".
func (n Names) Key(row stmt.Row) string { return n.texts[nameID{row.Region, keyID + row.LockKey}] }

// Process returns what the process that holds a row calls itself, or "".
func (n Names) Process(row stmt.Row) string {
	return n.texts[nameID{row.Region, processID + clientid.Of(row.Holder)}]
}

// Of reads the names of rows, as far as there are any, by one statement.
func (t *Table) Of(ctx context.Context, rows []stmt.Row) Names {
	ids := make(map[string]bool)
	for _, row := range rows {
		ids[keyID+row.LockKey] = true
		if client := clientid.Of(row.Holder); client != "" {
			ids[processID+client] = true
		}
	}
	return t.named(ctx, timeout, ids)
}

// named reads the rows that have some IDs, of every region.
func (t *Table) named(ctx context.Context, limit time.Duration, ids map[string]bool) Names {
	if len(ids) == 0 {
		return Names{}
	}
	q := t.statements.names
	if len(ids) > maxIDs {
		q = t.statements.all
	}
	notes, _ := t.read(ctx, limit, q, slices.Sorted(maps.Keys(ids)))
	texts := make(map[nameID]string, len(notes))
	for _, n := range notes {
		texts[nameID{n.region, n.id}] = n.text
	}
	return Names{texts}
}
