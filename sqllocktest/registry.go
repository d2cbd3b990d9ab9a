package sqllocktest

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/internal/test/virtualsqlite"
)

// maxConns is the size of a pool.
const maxConns = 8

// A Registry is a [sqllock.Registry] on a database of its own, with methods that a test
// calls to cause faults. All methods are safe for concurrent use.
type Registry struct {
	*sqllock.Registry

	tb      testing.TB
	opts    sqllock.RegistryOptions
	dsn     string
	network *flaky.Connector
	db      *sql.DB

	mu        sync.Mutex
	processes []*sqllock.Registry // the first is Registry
}

// New returns a registry on a new database with the lock table. opts may be nil. All registries of the test share a Waker, Observers
// and OnClose; OnClose is called once for each of them. Fair has no effect: SQLite has no sessions that
// could queue.
//
// When the test ends, New's cleanup closes the registry and all that [Registry.Another] has
// returned. If one of them still holds leases, the test fails with their keys, unless it has
// failed before. If New itself fails, it ends the test.
func New(tb testing.TB, opts *sqllock.RegistryOptions) *Registry {
	tb.Helper()
	r := &Registry{tb: tb, dsn: newFile(tb)}
	if opts != nil {
		r.opts = *opts
		r.opts.Fair = false
	}
	r.network = flaky.New(virtualsqlite.Driver{}, r.dsn)
	r.db = pool(r.network)
	tb.Cleanup(r.close)
	r.Registry = r.Another()
	return r
}

// Another returns the registry of another process: it has the same options and uses the same
// database, and a client id of its own. The client ids are process-1, that of [New], process-2
// and so on. If Another fails, because the database is broken for instance, it ends the test. So call
// it from the goroutine of the test, as t.Fatal.
func (r *Registry) Another() *sqllock.Registry {
	r.tb.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	repository := newRepository(r.tb, r.db, fmt.Sprintf("process-%d", len(r.processes)+1))
	registry, err := sqllock.NewRegistry(repository, &r.opts)
	if err != nil {
		r.tb.Fatalf("sqllocktest: %v", err)
	}
	r.processes = append(r.processes, registry)
	return registry
}

// DB returns the pool of the registries. A test creates its own tables there, for
// [sqllock.Registry.ExecuteLockedTx] and [sqllock.Lease.Guard]. It is closed when the test ends.
func (r *Registry) DB() *sql.DB { return r.db }

// Break makes every statement of the registries, and of [Registry.DB], fail with err from
// now on. Break(nil) repairs the database. Statements in flight when Break is called may
// still succeed. What a registry returns is a [sqllock.ErrDatabase] in which errors.Is
// finds err. A lease that cannot be renewed is lost at its deadline.
func (r *Registry) Break(err error) {
	if err == nil {
		r.network.Follow(nil)
		return
	}
	r.network.Follow(func(context.Context, flaky.Moment) error { return err })
}

// all returns the registries of all processes.
func (r *Registry) all() []*sqllock.Registry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*sqllock.Registry(nil), r.processes...)
}

// close ends the test's use of the database.
func (r *Registry) close() {
	r.tb.Helper()
	r.Break(nil) // or the leases could not be released
	failed := r.tb.Failed()
	for _, process := range r.all() {
		for _, held := range process.Held() {
			if !failed {
				r.tb.Errorf("sqllocktest: the lock of %q is still held by %s when the test ends", held.Key, held.Holder)
			}
		}
		if err := process.Close(context.Background()); err != nil {
			r.tb.Errorf("sqllocktest: close the registry: %v", err)
		}
	}
	if err := r.db.Close(); err != nil {
		r.tb.Errorf("sqllocktest: close the database: %v", err)
	}
}

// newFile returns the DSN of a new database.
func newFile(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "sqllock.db")
	if err := os.WriteFile(path, virtualsqlite.Template(tb, dialect.Spring7), 0o600); err != nil {
		tb.Fatalf("sqllocktest: %v", err)
	}
	return virtualsqlite.DSN(path)
}

// pool returns a pool that keeps its connections: opening one takes longer than a statement.
func pool(network *flaky.Connector) *sql.DB {
	db := sql.OpenDB(network)
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns)
	return db
}

//nolint:contextcheck,nolintlint // callers need pass no context: the test's is the right one
func newRepository(tb testing.TB, db *sql.DB, clientID string) *sqllock.Repository {
	tb.Helper()
	ctx := context.WithoutCancel(tb.Context()) // a cleanup may call
	repository, err := sqllock.NewRepository(ctx, db, dialect.SQLite(), &sqllock.RepositoryOptions{ClientID: clientID})
	if err != nil {
		tb.Fatalf("sqllocktest: %v", err)
	}
	return repository
}
