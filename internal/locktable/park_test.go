package locktable

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/probe"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
)

// mockedParking returns a table that parks rows.
func mockedParking(t *testing.T) (*Table, sqlmock.Sqlmock) {
	t.Helper()
	db, mock, err := sqlmock.New()
	check.Must(t, err)
	t.Cleanup(func() { _ = db.Close() }) // the mock did not expect it
	spare := check.Value(db.Conn(t.Context()))(t)
	t.Cleanup(func() { _ = spare.Close() }) // the mock ends with its last connection
	d := sqltext.Postgres().WithoutScans()
	names := check.Value(sqltext.NamesFor(""))(t)
	names.Channel = ""
	table, err := newTable(Config{DB: db, Dialect: d, Names: names, Region: "r", Layout: dialect.Spring7, Autocommit: true, DisableBatching: true},
		probe.Facts{Layout: dialect.Spring7, Dialect: d, Anywhere: d}, dbcall.ServerOf(t.Context(), d, sqltext.Names{}))
	check.Must(t, err)
	return table, mock
}

// parkedHolder is the holder of a row that another process has parked.
const parkedHolder = "other-k0123456789"

var (
	tokenColumns = []string{"token"}
	mine         = Claim{LockKey: "k", Holder: "mine-00000000001", TTL: time.Minute}
)

func found(holder string, left int64) *sqlmock.Rows {
	rows := sqlmock.NewRows([]string{"CLIENT_ID", "age", "left"})
	if holder != "" {
		rows.AddRow(holder, 1, left)
	}
	return rows
}

// A row that was released after an attempt was refused is not what was in the way, unless it is pinned.
func TestPark_IsNotInTheWay(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		refusal error
		holder  string
		left    int64
		want    string // the holder that is in the way
	}{
		"held":                          {nil, "other-0123456789a", 5, "other-0123456789a"},
		"parked":                        {nil, parkedHolder, -5, ""},
		"in a minimum hold":             {nil, parkedHolder, 5, parkedHolder},
		"parked, and pinned by another": {&pgconn.PgError{Code: "55P03"}, parkedHolder, -5, parkedHolder},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table, mock := mockedParking(t)
			refused := mock.ExpectQuery("INSERT")
			if test.refusal != nil {
				refused.WillReturnError(test.refusal)
			} else {
				refused.WillReturnRows(sqlmock.NewRows(tokenColumns))
			}
			mock.ExpectQuery("SELECT").WillReturnRows(found(test.holder, test.left))
			got, err := table.Acquisitions.Acquire(t.Context(), mine)
			check.Must(t, err)
			check.Equal(t, "acquired", got.Acquired, false)
			check.Equal(t, "holder", got.Row.Holder, test.want)
			check.Must(t, mock.ExpectationsWereMet())
		})
	}
}

// A caller that expects a parked row, and finds none, sends the plain acquisition, by the same holder: also if the first
// statement was sent twice.
func TestPark_TakeFindsNone(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]Row{"gone": {}, "free": {Holder: parkedHolder, Left: -5}, "its own": {Holder: mine.Holder, Left: 5}} {
		for _, resent := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", sent again: ", resent), func(t *testing.T) {
				t.Parallel()
				table, mock := mockedParking(t)
				table.Releases.parked.note("k", parkedHolder)
				if resent {
					mock.ExpectQuery("UPDATE").WillReturnError(io.ErrUnexpectedEOF)
				}
				mock.ExpectQuery("UPDATE").WillReturnRows(sqlmock.NewRows(tokenColumns))
				mock.ExpectQuery("SELECT").WillReturnRows(found(row.Holder, int64(row.Left)))
				mock.ExpectQuery("INSERT").WillReturnRows(sqlmock.NewRows(tokenColumns).AddRow(1))
				got, err := table.Acquisitions.Acquire(t.Context(), mine)
				check.Must(t, err)
				check.Equal(t, "acquired", got.Acquired, true)
				check.Equal(t, "parked", table.Leftovers.HasParked(), false)
				check.Must(t, mock.ExpectationsWereMet())
			})
		}
	}
}

// Whatever is released at the same time, no more rows are parked than may be; and none while there are more busy keys.
func TestPark_Bound(t *testing.T) {
	t.Parallel()
	var p parked
	var working sync.WaitGroup
	var admitted atomic.Int64
	for i := range 4 * maxParked {
		working.Go(func() {
			if p.admits(fmt.Sprint(i), parkedHolder) {
				admitted.Add(1)
			}
		})
	}
	working.Wait()
	check.Equal(t, "parked", admitted.Load(), maxParked)
	for i := range 4 * maxParked {
		if p.admits(fmt.Sprint(i), parkedHolder) {
			t.Errorf("key %d is parked where many are busy", i)
		}
	}
}

// A row that may have been parked without an answer is known, so that it is deleted later.
func TestPark_WithoutAnAnswer(t *testing.T) {
	t.Parallel()
	table, mock := mockedParking(t)
	busy := mine
	busy.Busy = true
	var next string
	mock.ExpectExec("UPDATE").WillReturnError(io.ErrUnexpectedEOF)
	mock.ExpectExec("UPDATE").WillReturnResult(driver.RowsAffected(0))
	mock.ExpectExec("DELETE").WillReturnResult(driver.RowsAffected(0))
	released, err := table.Releases.Release(t.Context(), busy)
	check.Must(t, err)
	check.Equal(t, "released", released, true)
	next = table.Releases.parked.holderOf("k")
	check.Equal(t, "known", strings.HasPrefix(next, table.IDs.Prefix()+"k"), true)
	mock.ExpectExec("DELETE").WithArgs(sqlmock.AnyArg(), "k", next).WillReturnResult(driver.RowsAffected(1))
	check.Must(t, table.Leftovers.DeleteParked(t.Context(), time.Now().Add(time.Hour)))
	check.Equal(t, "parked", table.Leftovers.HasParked(), false)
	check.Must(t, mock.ExpectationsWereMet())
}

// A row is forgotten only when it is gone: not after an error, and not by a deletion that has found none.
func TestPark_UntilItIsGone(t *testing.T) {
	t.Parallel()
	table, mock := mockedParking(t)
	later := time.Now().Add(time.Hour)
	table.Releases.parked.note("k", parkedHolder)
	mock.ExpectExec("DELETE").WillReturnResult(driver.RowsAffected(0))
	check.Must(t, check.ErrorOf(table.Releases.Release(t.Context(), mine)))
	check.Equal(t, "parked after the release of a leftover", table.Leftovers.HasParked(), true)

	table.Releases.parked.note("l", parkedHolder)
	mock.ExpectQuery("DELETE").WillReturnError(&pgconn.PgError{Code: "53100"})
	check.Equal(t, "an error", table.Leftovers.DeleteParked(t.Context(), later) != nil, true)
	check.Equal(t, "parked after an error", table.Releases.parked.n.Load(), 2)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	check.Equal(t, "an error", table.Leftovers.DeleteParked(ended, later) != nil, true)
	check.Equal(t, "parked after the end of the context", table.Releases.parked.n.Load(), 2)

	mock.ExpectQuery("DELETE").WillReturnRows(sqlmock.NewRows([]string{"LOCK_KEY", "CLIENT_ID"}).AddRow("l", parkedHolder))
	mock.ExpectQuery("SELECT").WillReturnRows(sqlmock.NewRows([]string{"REGION", "LOCK_KEY", "CLIENT_ID", "age", "left"}).AddRow("r", "k", parkedHolder, 1, -5)) // it was locked by a refused attempt
	mock.ExpectExec("DELETE").WillReturnResult(driver.RowsAffected(1))
	check.Must(t, table.Leftovers.DeleteParked(t.Context(), later))
	check.Equal(t, "parked", table.Leftovers.HasParked(), false)
	check.Must(t, mock.ExpectationsWereMet())
}
