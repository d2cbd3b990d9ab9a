package sqllock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

// tokensPerNumber is how many fencing tokens lie between two numbers of the database.
const tokensPerNumber = 65536

// A storage compares tokens, whether they come from a Lease or from an Acquisition.
func TestTokensOfRepositoryAndRegistryAreOnOneScale(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
		r, err := sqllock.NewRepository(t.Context(), db.DB.DB, db.Dialect, nil)
		must(t, err)
		registry := newRegistry(t, r, nil)
		var last int64
		for range 3 {
			lease, err := obtain(t, registry, "k").TryLock(t.Context())
			must(t, err)
			token := lease.Token()
			must(t, lease.Unlock(t.Context()))
			got, err := r.Acquire(t.Context(), "k", "holder", ttl)
			must(t, err)
			_, err = r.Delete(t.Context(), "k", "holder")
			must(t, err)
			if token <= last || got.Token <= token {
				t.Fatalf("tokens %d, %d, %d", last, token, got.Token)
			}
			last = got.Token
		}
	})
}

// A sequence that was set too high gives no negative token but an error, and nothing
// is acquired.
func TestASequenceBeyondAllTokens(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		database func(testing.TB) *dbtest.DB
		set      string
	}{
		"postgres": {dbtest.Postgres, "SELECT setval('INT_LOCK_FENCE', %d, false)"},
		"mysql":    {dbtest.MySQL, "ALTER SEQUENCE INT_LOCK_FENCE RESTART %d"},
	} {
		for _, isolation := range []sqllock.Isolation{sqllock.Serializable, sqllock.Autocommit} {
			t.Run(name+"/"+isolation.String(), func(t *testing.T) {
				t.Parallel()
				testSequenceBeyondAllTokens(t, test.database(t), test.set, isolation)
			})
		}
	}
}

func testSequenceBeyondAllTokens(t *testing.T, db *dbtest.DB, set string, isolation sqllock.Isolation) {
	t.Helper()
	const last = math.MaxInt64 / tokensPerNumber
	must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
	db.DB.MustExec(fmt.Sprintf(set, int64(last)))
	r, err := sqllock.NewRepository(t.Context(), db.DB.DB, db.Dialect, &sqllock.RepositoryOptions{Isolation: isolation})
	must(t, err)
	got, err := r.Acquire(t.Context(), "last", "holder", ttl)
	must(t, err)
	if got.Token != last*tokensPerNumber {
		t.Error(got)
	}
	_, err = r.Delete(t.Context(), "last", "holder")
	must(t, err)
	var trying sync.WaitGroup
	for i := range 40 { // some of them in batches
		trying.Go(func() {
			got, err := r.Acquire(context.Background(), fmt.Sprint(i), fmt.Sprint("holder", i), ttl)
			if got.Acquired || !errors.Is(err, sqllock.ErrDatabase) || !strings.Contains(err.Error(), "INT_LOCK_FENCE") {
				t.Error(got, err)
			}
		})
	}
	trying.Wait()
	rows, err := r.List(t.Context())
	must(t, err)
	if len(rows) > 0 {
		t.Errorf("%d rows are left behind: %v", len(rows), rows[0])
	}
}

// Of a table whose numbers are set by hand, too.
func TestATableBeyondAllTokens(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) *dbtest.DB{"sqlite": dbtest.SQLite, "mysql": dbtest.MySQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
			if db.Name == "mysql" {
				drawFromTable(t, db)
			}
			db.DB.MustExec(fmt.Sprintf("INSERT INTO INT_LOCK_FENCE (ID) VALUES (%d)", int64(math.MaxInt64/tokensPerNumber)))
			r, err := sqllock.NewRepository(t.Context(), db.DB.DB, db.Dialect, nil)
			must(t, err)
			got, err := r.Acquire(t.Context(), "k", "holder", ttl)
			if got.Acquired || !errors.Is(err, sqllock.ErrDatabase) || !strings.Contains(err.Error(), "INT_LOCK_FENCE") {
				t.Error(got, err)
			}
			_, there, err := r.Peek(t.Context(), "k")
			must(t, err)
			if there {
				t.Error("the row is left behind")
			}
		})
	}
}
