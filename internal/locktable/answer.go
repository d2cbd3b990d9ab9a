package locktable

import (
	"errors"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dialect"
)

// errNoOutcome is why it is not known what a statement, or a message, has done.
var errNoOutcome = errors.New("an acquisition had no answer about its outcome: does a proxy change results?")

// scanResult scans a row that an acquire statement returns. written reports whether the row was
// acquired, although there is an error.
func (t *Table) scanResult(rows *sqlx.Rows, c Claim, verify bool) (got Result, written bool, err error) {
	var age, left, number int64
	row := Row{Region: t.region, LockKey: c.LockKey, Holder: c.Holder}
	columns := []any{&number}
	if t.dialect.ReturnsHolder {
		columns = []any{&row.Holder, &age, &left, &number}
	}
	if err := t.scanVerified(rows, verify, columns...); err != nil {
		return Result{}, errors.As(err, new(*isolationError)) || errors.Is(err, dialect.ErrNotCommitted), err
	}
	row.Holder = unpadded(row.Holder)
	if row.Holder != c.Holder {
		row.Age, row.Left = micros(age), micros(left)
		return Result{Row: row}, false, nil
	}
	got.Token, err = t.tokens.of(number)
	got.Acquired = err == nil
	return got, err != nil, err
}

// scanVerified scans a row of an acquire statement. If verify is true, the row ends in the
// isolation in which the statement ran. In Autocommit any one will do.
func (t *Table) scanVerified(rows *sqlx.Rows, verify bool, columns ...any) error {
	if !verify {
		return rows.Scan(columns...)
	}
	var isolation string
	if err := rows.Scan(append(columns, &isolation)...); err != nil {
		return err
	}
	if t.transaction {
		return checkIsolation(isolation)
	}
	if isolation == dialect.NotCommitted {
		return dialect.ErrNotCommitted
	}
	return nil
}

// acquired collects the fencing tokens of the rows that a statement has acquired.
type acquired struct {
	table   *Table
	mine    map[rowID]bool
	byKey   map[string]int64 // by LOCK_KEY
	answers *int
}

func (t *Table) newAcquired(v values) acquired {
	a := acquired{t, make(map[rowID]bool, len(v.rows)), make(map[string]int64, len(v.rows)), new(int)}
	for _, c := range v.rows {
		a.mine[c.id()] = true
	}
	return a
}

// scan scans a row that the statement returns.
func (a acquired) scan(rows *sqlx.Rows, verify bool) error {
	var id rowID
	var number int64
	columns := []any{&id.lockKey, &number}
	if a.table.dialect.ReturnsHolder {
		columns = []any{&id.lockKey, &id.holder, &number}
	}
	if err := a.table.scanVerified(rows, verify, columns...); err != nil {
		return err
	}
	*a.answers++
	id = rowID{unpadded(id.lockKey), unpadded(id.holder)}
	if a.table.dialect.ReturnsHolder && !a.mine[id] {
		delete(a.byKey, id.lockKey) // another holder's, whatever an earlier run of the statement has returned
		return nil
	}
	token, err := a.table.tokens.of(number)
	if err == nil {
		a.byKey[id.lockKey] = token
	}
	return err
}

// result returns the tokens, or an error if the statement has not returned what it should. A statement
// that a node of Galera has repeated has more rows.
func (a acquired) result() (map[string]int64, error) {
	if a.table.dialect.ReturnsHolder && *a.answers < len(a.mine) {
		return nil, errNoOutcome
	}
	return a.byKey, nil
}
