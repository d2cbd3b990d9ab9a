package virtual_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/testmain"
	"github.com/sqllock/sqllock/internal/test/virtual"
)

func TestMain(m *testing.M) { testmain.Run(m) }

var must = check.Must

// inBubbles runs a test in a bubble for each layout.
func inBubbles(t *testing.T, test func(*testing.T, *dbtest.DB)) {
	for _, layout := range []dialect.Layout{dialect.Spring7, dialect.Spring6} {
		t.Run(layout.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { test(t, virtual.Migrated(t, layout)) })
		})
	}
}

func nowOf(t *testing.T, db *dbtest.DB) (now time.Time) {
	t.Helper()
	var text string
	must(t, db.DB.GetContext(t.Context(), &text, "SELECT datetime('now', 'subsec')"))
	return check.Value(time.Parse("2006-01-02 15:04:05.000", text))(t)
}

func TestTheClockIsTheBubbles(t *testing.T) {
	t.Parallel()
	inBubbles(t, func(t *testing.T, db *dbtest.DB) {
		for range 3 {
			if now, want := nowOf(t, db), time.Now().UTC().Truncate(time.Millisecond); !now.Equal(want) {
				t.Errorf("%v, want %v", now, want)
			}
			time.Sleep(time.Hour + 1234567*time.Nanosecond)
		}
	})
}

// TestOutsideOfABubbleTheClockIsSQLites compares both drivers on one file.
func TestOutsideOfABubbleTheClockIsSQLites(t *testing.T) {
	t.Parallel()
	db := virtual.Migrated(t, dialect.Spring7)
	actual := *db
	actual.DB = db.OpenDSN(t, "sqlite", db.DSN)
	for range 100 {
		first, between, last := nowOf(t, db), nowOf(t, &actual), nowOf(t, db)
		if between.Before(first) || between.After(last) {
			t.Fatalf("%v is not between %v and %v", between, first, last)
		}
	}
}

// TestAWriterIsAwaitedInVirtualTime has a writer wait for another one that ends, and for one
// that does not.
func TestAWriterIsAwaitedInVirtualTime(t *testing.T) {
	t.Parallel()
	inBubbles(t, func(t *testing.T, db *dbtest.DB) {
		const statement = "UPDATE INT_LOCK SET CLIENT_ID = CLIENT_ID"
		for _, hold := range []time.Duration{5 * time.Second, 50 * time.Second} {
			tx := check.Value(db.DB.BeginTx(t.Context(), nil))(t)
			if _, err := tx.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			time.AfterFunc(hold, func() {
				check.Is(t, tx.Commit(), nil)
			})
			_, err := db.DB.ExecContext(t.Context(), statement)
			took := time.Since(began).Round(100 * time.Millisecond)
			if want := min(hold, 10*time.Second); took != want || (err == nil) != (hold == want) {
				t.Errorf("held for %v: %v, %v", hold, took, err)
			}
			time.Sleep(hold)
		}
	})
}
