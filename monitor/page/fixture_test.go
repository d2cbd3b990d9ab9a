package page_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/internal/test/testmain"
	"github.com/sqllock/sqllock/internal/test/virtualsqlite"
	"github.com/sqllock/sqllock/monitor/page"
	"github.com/sqllock/sqllock/observe"
)

func TestMain(m *testing.M) { testmain.Run(m) }

var must = check.Must

const ttl = 30 * time.Second

// instant is the form of an instant in the table.
const instant = "2006-01-02 15:04:05.000"

// A fixture is a registry on a database of its own, in virtual time, whose network counts
// statements and can fail.
type fixture struct {
	*testing.T
	network  *flaky.Connector
	db       *sql.DB
	recorder *page.Recorder
	registry *sqllock.Registry
	options  page.Options
}

// inBubble runs a test in virtual time.
func inBubble(t *testing.T, test func(*fixture)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(newFixture(t)) })
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	file := filepath.Join(t.TempDir(), "locks.db")
	must(t, os.WriteFile(file, virtualsqlite.Template(t, dialect.Spring7), 0o600))
	f := &fixture{T: t, network: flaky.New(virtualsqlite.Driver{}, virtualsqlite.DSN(file)), recorder: new(page.Recorder)}
	f.db = sql.OpenDB(f.network)
	t.Cleanup(func() { must(t, f.db.Close()) })
	f.registry = f.process("web-1", sqllock.DefaultRegion, f.recorder.Observer())
	f.options = page.Options{Recorder: f.recorder}
	return f
}

// process returns the registry of a process.
func (f *fixture) process(client, region string, observers ...*observe.Observer) *sqllock.Registry {
	f.Helper()
	repository := check.Value(sqllock.NewRepository(f.Context(), f.db, dialect.SQLite(), &sqllock.RepositoryOptions{ClientID: client, Region: region}))(f.T)
	registry := check.Value(sqllock.NewRegistry(repository, &sqllock.RegistryOptions{TTL: ttl, Observers: observers}))(f.T)
	f.Cleanup(func() {
		f.network.Follow(nil)
		must(f.T, registry.Close(context.Background()))
	})
	return registry
}

// row puts a row into the table, as it is.
func (f *fixture) row(lockKey, region, holder string, age, left time.Duration) {
	f.Helper()
	now := time.Now().UTC()
	_, err := f.db.ExecContext(f.Context(), "INSERT INTO INT_LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER) VALUES (?, ?, ?, ?, ?)",
		lockKey, region, holder, now.Add(-age).Format(instant), now.Add(left).Format(instant))
	must(f.T, err)
}

func (f *fixture) handler() http.Handler { return page.Handler(f.registry, &f.options) }

// get returns the answer to a request of the page's own site.
func (f *fixture) get(h http.Handler, target string) *httptest.ResponseRecorder {
	f.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(f.Context(), http.MethodGet, target, nil))
	return w
}

// A locks is what locks.json contains, as far as tests look at it.
type locks struct {
	Error                         string
	Held, Kept, Expired, Finished int
	Matches, Page, Pages          int
	More                          bool
	Locks                         []lock
	Here                          here
	Leaders                       []struct {
		Role, Client string
		Unknown      bool
		Here         struct {
			Leads bool
			Terms int
		}
	}
	Waiters []struct {
		Key, Region string
		ClientID    string  `json:"client_id"`
		Waited      float64 `json:"waited_seconds"`
		Callers     int
	}
	Jobs []job
	Runs []struct {
		Key, Region           string
		Ended                 float64 `json:"ended_seconds"`
		Succeeded             float64 `json:"succeeded_seconds"`
		Took                  float64 `json:"took_seconds"`
		Failed                bool    `json:"last_failed"`
		Code                  int     `json:"exit_code"`
		Runs, Failures, Skips int64
	}
	Hour []minute
	Seen struct {
		Acquired    int
		LongestWait float64 `json:"longest_wait_seconds"`
		LongestHold float64 `json:"longest_hold_seconds"`
		Events      []struct{ What string }
	}
	Events   []struct{ Severity, What, Key, Text string }
	Findings []page.Finding
	Renewals *struct {
		Renewals, Failed, Lost, Leases int
		Error                          string
	}
}

type here struct {
	Held, Waiting int
	Keys          []struct {
		Key     string
		Callers int
	}
}

type lock struct {
	Key            *string
	LockKey        string `json:"lock_key"`
	Region, Holder string
	State          string
	Age            float64  `json:"age_seconds"`
	Left           float64  `json:"left_seconds"`
	TTL            *float64 `json:"ttl_seconds"`
	Renewed        *float64 `json:"renewed_seconds"`
	Overdue        *bool
	Here           bool
	Token          int64
	Waiting        int
	Of, Seat       string
	Process        *sqllock.Process
}

type job struct {
	Job                   string
	Runs, Failed, Skipped int
	Errors                int
	Took                  float64 `json:"took_seconds"`
	Error                 string
}

type minute struct{ Held, Waiting float64 }

// json returns what locks.json contains.
func (f *fixture) json(h http.Handler, parameters string) (l locks) {
	f.Helper()
	w := f.get(h, "/locks.json"+parameters)
	must(f.T, json.Unmarshal(w.Body.Bytes(), &l))
	return l
}

// keys returns the keys of locks, or their LOCK_KEY.
func (l locks) keys() (keys []string) {
	for _, one := range l.Locks {
		if one.Key != nil {
			keys = append(keys, *one.Key)
		} else {
			keys = append(keys, one.LockKey)
		}
	}
	return keys
}

// formOf returns the form that removes a row.
func formOf(row sqllock.Row) url.Values {
	return url.Values{"region": {row.Region}, "lock_key": {row.LockKey}, "holder": {row.Holder}}
}
