package locktable

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/transaction"
)

// What only improves an error takes no connection that is kept free for renewals, and one at a time.
func TestPinSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table, db, mock := mockedSequence(t)
		db.SetMaxOpenConns(2)
		table.pool.Gate = transaction.GateOf(db)
		mock.ExpectQuery("INNODB_TRX").WillReturnRows(sqlmock.NewRows([]string{"session", "since"}).AddRow("session 1", 2))
		other := table.pool.Try()
		for other.Next(t.Context()) {
			if pin, ok := table.Pins.PinSoon(t.Context(), "k"); ok {
				t.Errorf("%+v by the last connection", pin)
			}
		}
		synctest.Wait()
		table.Pins.soon.Lock()
		if pin, ok := table.Pins.PinSoon(t.Context(), "k"); ok {
			t.Errorf("%+v while another is asked for", pin)
		}
		table.Pins.soon.Unlock()
		if pin, ok := table.Pins.PinSoon(t.Context(), "k"); !ok || pin.Session != "session 1" {
			t.Errorf("%+v", pin)
		}
		check.Must(t, errors.Join(other.Err, mock.ExpectationsWereMet()))
		_ = db.Close() // the mock did not expect it
	})
}
