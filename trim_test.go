package sqllock_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/migrations"
)

// The table that tokens are drawn from stays small, whatever numbers the server gives:
// with two primaries each of them gives every other one.
// It takes seconds: the table is trimmed after a thousand acquisitions.
func TestTheTableOfNumbersIsTrimmed(t *testing.T) {
	t.Parallel()
	for name, session := range map[string]map[string]string{
		"EachNumber":       nil,
		"OddNumbers":       {"auto_increment_increment": "2", "auto_increment_offset": "1"},
		"EachSeventhPlus5": {"auto_increment_increment": "7", "auto_increment_offset": "5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := dbtest.MySQL(t)
			must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
			drawFromTable(t, db)
			const earlier = 3000
			db.DB.MustExec("INSERT INTO INT_LOCK_FENCE (ID) VALUES (1)" + strings.Repeat(", (NULL)", earlier-1))
			pool := db.OpenDSN(t, db.Driver, db.With(t, session))
			r, err := sqllock.NewRepository(t.Context(), pool.DB, db.Dialect, &sqllock.RepositoryOptions{Isolation: sqllock.Autocommit})
			must(t, err)
			const acquisitions = 1100
			for range acquisitions {
				got, err := r.Acquire(t.Context(), "k", "holder", ttl)
				must(t, err)
				if !got.Acquired {
					t.Fatal(got)
				}
			}
			for began := time.Now(); ; time.Sleep(time.Millisecond) { // it runs in the background
				var rows int
				must(t, db.DB.Get(&rows, "SELECT COUNT(*) FROM INT_LOCK_FENCE"))
				if rows < earlier {
					break
				}
				if time.Since(began) > ttl {
					t.Fatalf("%d rows, of which %d are of this process", rows, acquisitions)
				}
			}
		})
	}
}

// Close waits for the statement that trims: nothing of a registry runs on after that.
func TestCloseWaitsForTheTrim(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		var begun, ended atomic.Bool
		s.connector.Follow(func(ctx context.Context, m flaky.Moment) error {
			if end, limited := ctx.Deadline(); limited && time.Until(end) <= time.Second { // all others have longer
				begun.Store(true)
				time.Sleep(300 * time.Millisecond)
				ended.Store(m.Done)
			}
			return nil
		})
		for range 1100 {
			must(t, held(s).Unlock(t.Context()))
			if begun.Load() {
				break
			}
		}
		must(t, s.registry.Close(t.Context()))
		if !begun.Load() || !ended.Load() {
			t.Error("begun:", begun.Load(), "ended:", ended.Load())
		}
	})
}
