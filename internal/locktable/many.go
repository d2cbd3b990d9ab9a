package locktable

import (
	"context"
	"time"
)

// manyKeys is from how many keys on they are looked up in a hash table: for fewer a look at the
// whole table would cost more, if it is large.
const manyKeys = 128

// If the statement with the hash table takes longer than the limits, the table is large, or has many
// dead rows: then each key is looked up in the index, for a while.
const (
	hashedLimit     = 5 * time.Millisecond
	hashedLimitEach = 5 * time.Microsecond // for each key
	hashedPause     = time.Minute
)

// peekMany returns the rows of many keys, by LOCK_KEY.
func (t *Table) peekMany(ctx context.Context, v values) (map[string]Row, error) {
	s, n := &t.statements.peekAll, max(len(v.rows), len(v.keys))
	again := t.hashedAgain.Load()
	if t.statements.peekMany.text != "" && n >= manyKeys && (again == nil || time.Now().After(*again)) {
		s = &t.statements.peekMany
	}
	began := time.Now()
	rows, err := t.selectRows(ctx, *s, v)
	if s == &t.statements.peekMany && time.Since(began) > hashedLimit+time.Duration(n)*hashedLimitEach {
		until := began.Add(hashedPause)
		t.hashedAgain.Store(&until)
	}
	found := make(map[string]Row, len(rows))
	for _, row := range rows {
		found[row.LockKey] = row
	}
	return found, err
}

func (t *Table) selectRows(ctx context.Context, s statement, v values) ([]Row, error) {
	return ask(ctx, t.pool, func(db executor) ([]Row, error) { return selectRows(ctx, db, s, v) })
}

func (t *Table) selectRowIDs(ctx context.Context, s statement, v values) (map[rowID]bool, error) {
	return ask(ctx, t.pool, func(db executor) (map[rowID]bool, error) { return selectRowIDs(ctx, db, s, v) })
}
