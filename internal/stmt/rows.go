// Package stmt has the statements of the lock table: what they are given, how they are compiled, bound and sent, and how the
// rows that they answer are read. It knows no transaction and no policy.
package stmt

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"github.com/sqllock/sqllock/internal/clientid"
)

// A RowID is a row of the region as one holder knows it. The result of a statement for many
// rows is matched by both: one holder may be in the rows of several keys.
type RowID struct{ LockKey, Holder string }

// A Row is one row of the lock table. The root package documents the fields.
type Row struct {
	Region, LockKey string
	Holder          string
	Age             time.Duration
	Left            time.Duration
}

// Expired reports whether any contender may take the row over.
func (r Row) Expired() bool { return r.Left < 0 }

// IsReleased reports whether the row is free because its holder has released it: it was parked, or its minimum hold is over.
func (r Row) IsReleased() bool { return r.Expired() && clientid.IsKept(r.Holder) }

// IsHeldBy reports whether the row is that of the claim, and lasts.
func (r Row) IsHeldBy(c Claim) bool { return r.Holder == c.Holder && !r.Expired() }

// IsOf reports whether the row is that of the claim, whether it lasts or not.
func (r Row) IsOf(c Claim) bool { return r.Holder == c.Holder && r.LockKey == c.LockKey }

// A Claim is a row as one acquisition wants it, or several.
//
// A joint claim is one of several rows: one acquisition has all of them, or none. It has one
// holder. Each verb of the table takes it like that of one row, and does what it does to all of
// the rows, by one statement. Joint claims are not batched: they are batches.
type Claim struct {
	LockKey string        // LOCK_KEY
	Holder  string        // CLIENT_ID of the acquisition: see package clientid
	TTL     time.Duration // how long the row is to last from now
	More    []string      // further LOCK_KEYs, higher and in order, of a joint claim
	// InOrder, unless it is "", is the LOCK_KEY whose turn must be free when the row is acquired.
	InOrder string

	// Busy says that the key is acquired again and again, so that its row may be parked when it is released.
	Busy bool

	Parked bool  // its row was parked; the table sets it
	Turn   int64 // the number of that turn, or 0; the table sets it
	Resent bool  // it was sent before, and that may still be done; the table sets it
}

// ID is what one row of c is known by.
func (c Claim) ID() RowID { return RowID{c.LockKey, c.Holder} }

// IsJoint reports whether c is a claim of several rows.
func (c Claim) IsJoint() bool { return len(c.More) > 0 }

// Count is how many rows c is about.
func (c Claim) Count() int { return 1 + len(c.More) }

// lockKeyAt is the LOCK_KEY of the i-th row.
func (c Claim) lockKeyAt(i int) string {
	if i == 0 {
		return c.LockKey
	}
	return c.More[i-1]
}

// LockKeys are the LOCK_KEYs of c, in order.
func (c Claim) LockKeys() []string { return append([]string{c.LockKey}, c.More...) }

// single is the claim of one of c's rows.
func (c Claim) single(lockKey string) Claim {
	one := Claim{LockKey: lockKey, Holder: c.Holder, TTL: c.TTL}
	if lockKey == c.InOrder {
		one.Turn = c.Turn
	}
	return one
}

// Each returns the claims of c's rows, in the order of their keys.
func (c Claim) Each() []Claim {
	claims := make([]Claim, c.Count())
	for i := range claims {
		claims[i] = c.single(c.lockKeyAt(i))
	}
	return claims
}

// Flattened returns the claims of all rows of claims.
func Flattened(claims []Claim) []Claim {
	if !slices.ContainsFunc(claims, Claim.IsJoint) {
		return claims
	}
	var all []Claim
	for _, c := range claims {
		all = append(all, c.Each()...)
	}
	return all
}

// SelectRows returns the rows that s answers, or none if they are not complete.
func SelectRows(ctx context.Context, db Executor, s Statement, v Values) (list []Row, err error) {
	err = Query(ctx, db, s, v, func(rows *sql.Rows) error {
		var row Row
		var age, left sql.NullInt64
		if err := rows.Scan(&row.Region, &row.LockKey, &row.Holder, &age, &left); err != nil {
			return err
		}
		row.LockKey, row.Holder = Unpadded(row.LockKey), Unpadded(row.Holder)
		row.Age, row.Left = Micros(age), Micros(left)
		list = append(list, row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// SelectRowIDs returns the rows that s answers, which has columns LOCK_KEY and CLIENT_ID.
func SelectRowIDs(ctx context.Context, db Executor, s Statement, v Values) (map[RowID]bool, error) {
	ids := make(map[RowID]bool)
	err := Query(ctx, db, s, v, func(rows *sql.Rows) error {
		id, err := ScanRowID(rows)
		ids[id] = true
		return err
	})
	return ids, err
}

// ScanRowID reads LOCK_KEY and CLIENT_ID.
func ScanRowID(rows *sql.Rows) (RowID, error) {
	var id RowID
	err := rows.Scan(&id.LockKey, &id.Holder)
	return RowID{Unpadded(id.LockKey), Unpadded(id.Holder)}, err
}

// SelectTexts returns the one column of text that s answers.
func SelectTexts(ctx context.Context, db Executor, s Statement, v Values) (texts []string, err error) {
	err = Query(ctx, db, s, v, func(rows *sql.Rows) error {
		var text string
		err := rows.Scan(&text)
		texts = append(texts, Unpadded(text))
		return err
	})
	return texts, err
}

// Micros converts what the database answered. It stops at 290 years, to which a program can add a while:
// rows written by hand may lie further ahead. So it does for NULL: the database cannot read the instant
// that another program has written, and does not take the row for expired either.
func Micros(n sql.NullInt64) time.Duration {
	const most = 290 * 365 * 24 * int64(time.Hour/time.Microsecond)
	if !n.Valid {
		n.Int64 = most
	}
	return time.Duration(min(max(n.Int64, -most), most)) * time.Microsecond
}

// Unpadded returns the value of a column CHAR(36), which is padded with blanks.
func Unpadded(text string) string { return strings.TrimRight(text, " ") }
