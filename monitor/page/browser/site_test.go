package browser_test

import (
	"context"
	"database/sql"
	"flag"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/drivers/sqlitelock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/migrations"
	"github.com/sqllock/sqllock/monitor/page"
	"github.com/sqllock/sqllock/observe"
)

var pictures = flag.String("pictures", "", "the directory to write pictures of the page to")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A site is a server with the page under a prefix, over a table with locks whose leases outlast
// the test.
type site struct {
	*testing.T
	registry *sqllock.Registry
	recorder *page.Recorder
	db       *sql.DB
	url      string
	live     atomic.Int64 // requests of what changes
}

// prefix is where the page is mounted.
const prefix = "/internal/locks/"

func newSite(t *testing.T, o page.Options) *site {
	t.Helper()
	file := filepath.Join(t.TempDir(), "locks.db")
	s := &site{T: t, recorder: new(page.Recorder)}
	var err error
	s.db, err = sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(60000)&_pragma=journal_mode(WAL)")
	check.Must(s, err)
	t.Cleanup(func() { check.Must(s, s.db.Close()) })
	check.Must(s, migrations.Up(t.Context(), s.db, dialect.SQLite(), nil))
	s.registry, err = sqlitelock.Open(t.Context(), file, &sqlitelock.Options{
		Repository: sqllock.RepositoryOptions{ClientID: "web-1:4711"},
		Registry:   sqllock.RegistryOptions{TTL: time.Hour, Observers: []*observe.Observer{s.recorder.Observer()}},
	})
	check.Must(s, err)
	t.Cleanup(func() { check.Must(s, s.registry.Close(context.Background())) })
	o.Recorder = s.recorder
	handler := page.Handler(s.registry, &o)
	mux := http.NewServeMux()
	mux.Handle(prefix, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == prefix+"live" {
			s.live.Add(1)
		}
		handler.ServeHTTP(w, r)
	}))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.url = server.URL + prefix
	return s
}

// row puts a row into the table.
func (s *site) row(lockKey, region, holder string, age, left time.Duration) {
	s.Helper()
	const instant = "2006-01-02 15:04:05.000"
	now := time.Now().UTC()
	_, err := s.db.ExecContext(s.Context(), "INSERT INTO INT_LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER) VALUES (?, ?, ?, ?, ?)",
		lockKey, region, holder, now.Add(-age).Format(instant), now.Add(left).Format(instant))
	check.Must(s, err)
}

// named puts the row of a key into the table.
func (s *site) named(key, holder string, age, left time.Duration) {
	s.Helper()
	lockKey := check.Value(s.registry.Repository().LockKey(key))(s)
	s.row(lockKey, sqllock.DefaultRegion, holder, age, left)
}

// delete removes rows.
func (s *site) delete(holder string) {
	s.Helper()
	check.Must(s, check.ErrorOf(s.db.ExecContext(s.Context(), "DELETE FROM INT_LOCK WHERE CLIENT_ID = ?", holder)))
}

// count returns how many rows a holder has.
func (s *site) count(holder string) (n int) {
	s.Helper()
	check.Must(s, s.db.QueryRowContext(s.Context(), "SELECT COUNT(*) FROM INT_LOCK WHERE CLIENT_ID = ?", holder).Scan(&n))
	return n
}

// allowed lets every viewer unlock.
func allowed(*http.Request, sqllock.Row) error { return nil }
