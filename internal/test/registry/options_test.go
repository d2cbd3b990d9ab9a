package registry_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

func TestOptions_OfARepository(t *testing.T) {
	t.Parallel()
	db := migrated(t)
	for name, opts := range map[string]sqllock.RepositoryOptions{
		"long region":           {Region: strings.Repeat("r", 101)},
		"blank region":          {Region: "r "},
		"region not UTF-8":      {Region: "\xff"},
		"region with NUL":       {Region: "a\x00b"},
		"prefix":                {Prefix: "INT_; DROP TABLE INT_LOCK; --"},
		"long prefix":           {Prefix: strings.Repeat("p", 41)},
		"long client id":        {ClientID: strings.Repeat("c", 25)},
		"blank client id":       {ClientID: "a b"},
		"isolation":             {Isolation: 3},
		"layout":                {Layout: 3},
		"notify":                {Notify: true}, // SQLite cannot
		"negative time-to-live": {TTL: -time.Second},
	} {
		if _, err := sqllock.NewRepository(t.Context(), db.DB.DB, db.Dialect, &opts); !errors.Is(err, sqllock.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	is(t, check.ErrorOf(sqllock.NewRepository[*sql.DB](t.Context(), nil, db.Dialect, nil)), sqllock.ErrInvalid)
	is(t, check.ErrorOf(sqllock.NewRepository(t.Context(), db.DB.DB, dialect.Dialect{}, nil)), sqllock.ErrInvalid)
	must(t, check.ErrorOf(sqllock.NewRepository(t.Context(), db.DB.DB, db.Dialect, &sqllock.RepositoryOptions{
		Region: strings.Repeat("é", 100), ClientID: "Billing.7f9c_a:b-c",
	})))
}

func TestOptions_OfARegistry(t *testing.T) {
	t.Parallel()
	r := newRepository(t, migrated(t).DB, nil)
	for _, opts := range []sqllock.RegistryOptions{
		{TTL: -time.Second}, {TTL: sqllock.MinTTL - 1}, {IdleBetweenTries: -1}, {CacheCapacity: -1}, {Fair: true, HandOff: true},
	} {
		if _, err := sqllock.NewRegistry(r, &opts); !errors.Is(err, sqllock.ErrInvalid) {
			t.Errorf("%+v: %v", opts, err)
		}
	}
	is(t, check.ErrorOf(sqllock.NewRegistry(nil, nil)), sqllock.ErrInvalid)
}

// On TiDB a token may take ten seconds after the failure of a server.
func TestOptions_LeastTTLOfTiDB(t *testing.T) {
	t.Parallel()
	repository := check.Value(sqllock.NewRepository(t.Context(), migrated(t).DB, dialect.TiDB(), &sqllock.RepositoryOptions{Layout: dialect.Spring7}))(t)
	const least = 10 * time.Second
	is(t, check.ErrorOf(sqllock.NewRegistry(repository, &sqllock.RegistryOptions{TTL: least - 1, NoRenew: true})), sqllock.ErrInvalid)
	registry := check.Value(sqllock.NewRegistry(repository, &sqllock.RegistryOptions{TTL: least, NoRenew: true}))(t)
	is(t, check.ErrorOf(check.Value(registry.Obtain("k"))(t).WithTTL(least-1).TryLock(t.Context())), sqllock.ErrInvalid)
}

func TestOptions_BadInputSendsNothing(t *testing.T) {
	t.Parallel()
	s := newFixture(t, sqllock.Serializable)
	s.connector.Follow(nil)
	ctx := t.Context()
	work := func(context.Context, *sql.Tx) error { return nil }
	for name, call := range map[string]func() error{
		"Obtain":          func() error { return check.ErrorOf(s.registry.Obtain("")) },
		"ExecuteLocked":   func() error { return s.registry.ExecuteLocked(ctx, "", nil) },
		"TryLockFor":      func() error { return check.ErrorOf(s.lock.TryLockFor(ctx, -1)) },
		"Lock of \"\"":    func() error { return check.ErrorOf(s.registry.Lock(ctx, "")) },
		"TryLock of \"\"": func() error { return check.ErrorOf(s.registry.TryLock(ctx, "")) },
		"TryFor of \"\"":  func() error { return check.ErrorOf(s.registry.TryLockFor(ctx, "", ttl)) },
		"negative wait":   func() error { return check.ErrorOf(s.registry.TryLockFor(ctx, "k", -1)) },
		"ExecuteTx":       func() error { return s.registry.ExecuteLockedTx(ctx, "", s.pool.DB, nil, nil) },
		"no function":     func() error { return s.lock.ExecuteLocked(ctx, nil) },
		"nor for":         func() error { return s.lock.ExecuteLockedFor(ctx, ttl, nil) },
		"nor for Tx":      func() error { return s.lock.ExecuteLockedTx(ctx, s.pool.DB, nil, nil) },
		"no pool":         func() error { return s.lock.ExecuteLockedTx(ctx, nil, nil, work) },
		"nor for Tx, for": func() error { return s.lock.ExecuteLockedTxFor(ctx, ttl, s.pool.DB, nil, nil) },
		"no pool, for":    func() error { return s.lock.ExecuteLockedTxFor(ctx, ttl, nil, nil, work) },
		"wait of Tx":      func() error { return s.lock.ExecuteLockedTxFor(ctx, -1, s.pool.DB, nil, work) },
		"wait of fn":      func() error { return s.lock.ExecuteLockedFor(ctx, -1, nothing) },
		"WithMinHold":     func() error { return check.ErrorOf(s.lock.WithMinHold(-1).Lock(ctx)) },
		"min hold, try":   func() error { return check.ErrorOf(s.lock.WithMinHold(-1).TryLock(ctx)) },
		"min hold, for":   func() error { return check.ErrorOf(s.lock.WithMinHold(-1).TryLockFor(ctx, ttl)) },
		"min hold, fn":    func() error { return s.lock.WithMinHold(-1).ExecuteLocked(ctx, nothing) },
		"min hold, Tx":    func() error { return s.lock.WithMinHold(-1).ExecuteLockedTx(ctx, s.pool.DB, nil, work) },
		"WithTTL":         func() error { return check.ErrorOf(s.lock.WithTTL(0).Lock(ctx)) },
		"short TTL":       func() error { return check.ErrorOf(s.lock.WithTTL(time.Millisecond).TryLock(ctx)) },
		"negative age":    func() error { return check.ErrorOf(s.registry.ExpireUnusedOlderThan(-1)) },
		"Acquire":         func() error { return check.ErrorOf(s.repository.Acquire(ctx, "", "holder", ttl)) },
		"Acquire holder":  func() error { return check.ErrorOf(s.repository.Acquire(ctx, "k", "", ttl)) },
		"long holder":     func() error { return check.ErrorOf(s.repository.Acquire(ctx, "k", strings.Repeat("t", 37), ttl)) },
		"Renew":           func() error { return check.ErrorOf(s.repository.Renew(ctx, "k", "holder", 0)) },
		"Delete":          func() error { return check.ErrorOf(s.repository.Delete(ctx, "k", "")) },
		"IsAcquired":      func() error { return check.ErrorOf(s.repository.IsAcquired(ctx, "", "holder")) },
		"Peek":            func() error { _, _, err := s.repository.Peek(ctx, "\xff"); return err },
	} {
		if err := call(); !errors.Is(err, sqllock.ErrInvalid) || errors.Is(err, sqllock.ErrDatabase) {
			t.Errorf("%s: %v", name, err)
		}
	}
	check.Equal(t, "statements", s.connector.Count(), 0)
	must(t, check.Value(s.lock.WithMinHold(0).TryLock(ctx))(t).Unlock(ctx))
}

// TestOptions_ReadOnlyDatabase is refused at the first write, with its own error.
func TestOptions_ReadOnlyDatabase(t *testing.T) {
	t.Parallel()
	db := migrated(t)
	pool := check.Value(sqlx.Open(db.Driver, db.With(t, map[string]string{"_pragma": "query_only(1)"})))(t)
	t.Cleanup(func() { must(t, pool.Close()) })
	is(t, check.ErrorOf(obtain(t, newRegistry(t, newRepository(t, pool, nil), nil), "k").Lock(t.Context())), sqllock.ErrReadOnly, sqllock.ErrDatabase)
}

// The rows of the four-column table do not say when they expire, so one time-to-live judges
// all of them: that of the repository.
func TestOptions_FourColumnsHaveOneTTL(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, &migrations.Options{Layout: dialect.Spring6}))
	const own = 3 * time.Minute
	r := newRepository(t, db.DB, &sqllock.RepositoryOptions{TTL: own})
	for _, opts := range []sqllock.RegistryOptions{{TTL: own + 1}, {TTL: sqllock.DefaultTTL}, {MaxHold: own - 1}} {
		if _, err := sqllock.NewRegistry(r, &opts); !errors.Is(err, sqllock.ErrInvalid) {
			t.Errorf("%+v: %v", opts, err)
		}
	}
	newRegistry(t, r, &sqllock.RegistryOptions{TTL: own, MaxHold: own, NoRenew: true})
	lock := obtain(t, newRegistry(t, r, &sqllock.RegistryOptions{NoRenew: true}), "k")
	is(t, check.ErrorOf(lock.WithTTL(own+1).TryLock(t.Context())), sqllock.ErrInvalid)
	lease := check.Value(lock.WithTTL(own).TryLock(t.Context()))(t)
	if left := time.Until(lease.Deadline()); left > own || left < own-time.Minute {
		t.Errorf("%v left", left)
	}
	is(t, lease.RenewFor(t.Context(), own+1), sqllock.ErrInvalid)
	row, ok, err := r.Peek(t.Context(), "k")
	must(t, err)
	other, _, err := newRepository(t, db.DB, &sqllock.RepositoryOptions{TTL: 2 * own}).Peek(t.Context(), "k")
	must(t, err)
	if !ok || row.Left > own || row.Left < own-time.Minute || other.Left <= own {
		t.Errorf("%v and %v left", row.Left, other.Left)
	}
	must(t, lease.Unlock(t.Context()))
	is(t, check.ErrorOf(sqllock.NewRepository(t.Context(), db.DB.DB, db.Dialect, &sqllock.RepositoryOptions{TTL: sqllock.MinTTL - 1})), sqllock.ErrInvalid)

	// With EXPIRED_AFTER each registry has its own.
	newRegistry(t, newRepository(t, migrated(t).DB, &sqllock.RepositoryOptions{TTL: own}), &sqllock.RegistryOptions{TTL: own + 1, NoRenew: true})
}

// Options that other databases, or other isolations, have no use for.
func TestOptions_AcquirersAndMessages(t *testing.T) {
	t.Parallel()
	db := migrated(t)
	for name, c := range map[string]struct {
		dialect dialect.Dialect
		opts    sqllock.RepositoryOptions
	}{
		"acquirers of SQLite":         {dialect.SQLite(), sqllock.RepositoryOptions{Acquirers: db.DB.DB}},
		"acquirers in autocommit":     {dialect.Postgres(), sqllock.RepositoryOptions{Acquirers: db.DB.DB, Isolation: sqllock.Autocommit}},
		"acquirers in read committed": {dialect.Postgres(), sqllock.RepositoryOptions{Acquirers: db.DB.DB, Isolation: sqllock.ReadCommitted}},
		"messages of SQLite":          {dialect.SQLite(), sqllock.RepositoryOptions{MultiStatements: true}},
		"messages of PostgreSQL":      {dialect.Postgres(), sqllock.RepositoryOptions{MultiStatements: true}},
	} {
		if _, err := sqllock.NewRepository(t.Context(), db.DB.DB, c.dialect, &c.opts); !errors.Is(err, sqllock.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A server that only speaks the protocol of another one is refused, also if it has no table yet, unless it is permitted.
func TestOptions_UnsupportedServer(t *testing.T) {
	t.Parallel()
	errNoTable := &mysql.MySQLError{Number: 1146, Message: "Table 'INT_LOCK' doesn't exist"}
	tiDB := func(mock sqlmock.Sqlmock) { expectDescribed(mock, "5.7.44 TiDB") }
	empty := func(mock sqlmock.Sqlmock) {
		mock.ExpectQuery("SELECT server.version").WillReturnError(errNoTable)
		mock.ExpectQuery("SELECT CONCAT_WS(").WillReturnRows(sqlmock.NewRows([]string{"version"}).AddRow("5.7.44 TiDB"))
	}
	for name, test := range map[string]struct {
		expect     []func(sqlmock.Sqlmock)
		unverified bool
		want       error
	}{
		"with a table":               {[]func(sqlmock.Sqlmock){tiDB}, false, sqllock.ErrInvalid},
		"without a table":            {[]func(sqlmock.Sqlmock){empty}, false, sqllock.ErrInvalid},
		"permitted":                  {[]func(sqlmock.Sqlmock){tiDB, expectTokens, expectNoCluster}, true, nil},
		"permitted, without a table": {[]func(sqlmock.Sqlmock){empty, expectNoCluster}, true, sqllock.ErrSchema},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, mock := matching(t, strings.HasPrefix)
			for _, expect := range test.expect {
				expect(mock)
			}
			_, err := sqllock.NewRepository(t.Context(), db, dialect.MySQL(), &sqllock.RepositoryOptions{Unverified: test.unverified})
			is(t, err, test.want)
			if errors.Is(err, sqllock.ErrInvalid) {
				check.Contains(t, err.Error(), "TiDB", "SKIP LOCKED", "RepositoryOptions.Unverified")
			}
			must(t, mock.ExpectationsWereMet())
			mock.ExpectClose()
			must(t, db.Close())
		})
	}
}

func expectNoCluster(mock sqlmock.Sqlmock) { expectAsked(mock) }

// TestNewRepository_Pools gives it the pools that users have.
func TestNewRepository_Pools(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	check.Must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
	for name, repository := range map[string]*sqllock.Repository{
		"*sql.DB":  check.Value(sqllock.NewRepository(t.Context(), db.DB.DB, db.Dialect, nil))(t),
		"*sqlx.DB": check.Value(sqllock.NewRepository(t.Context(), db.DB, db.Dialect, nil))(t),
	} {
		got := check.Value(repository.Acquire(t.Context(), name, repository.NewHolder(), time.Minute))(t)
		check.Equal(t, name, got.Acquired, true)
	}
	check.Is(t, check.ErrorOf(sqllock.NewRepository[*sql.DB](t.Context(), nil, db.Dialect, nil)), sqllock.ErrInvalid)
	check.Is(t, check.ErrorOf(sqllock.NewRepository[*sqlx.DB](t.Context(), nil, db.Dialect, nil)), sqllock.ErrInvalid)
	check.Is(t, check.ErrorOf(sqllock.NewRepository(t.Context(), &sqlx.DB{}, db.Dialect, nil)), sqllock.ErrInvalid)
}
