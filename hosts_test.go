package sqllock_test

import (
	"errors"
	"net/url"
	"os"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
	"github.com/sqllock/sqllock/migrations"
)

// Of several hosts Open chooses the primary, also if a standby answers first, and so does its listener. It takes
// servers of its own.
func TestOpenChoosesThePrimary(t *testing.T) {
	t.Parallel()
	dbtest.OwnServers(t)
	scratch, err := server.NewScratch()
	must(t, err)
	t.Cleanup(func() { must(t, scratch.Remove()) })
	primary, standby, err := server.StartPostgresPair(t.Context(), scratch.Dir)
	if errors.Is(err, server.ErrMissing) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	must(t, err)
	t.Cleanup(func() { must(t, errors.Join(standby.Stop(), primary.Stop())) })
	db, err := sqlx.Connect("pgx", primary.DSN())
	must(t, err)
	must(t, migrations.Up(t.Context(), db.DB, dialect.Postgres(), nil))
	must(t, db.Close())

	first, err := url.Parse(standby.DSN())
	must(t, err)
	second, err := url.Parse(primary.DSN())
	must(t, err)
	dsn := "host=127.0.0.1,127.0.0.1 port=" + first.Port() + "," + second.Port() + " user=postgres dbname=postgres sslmode=prefer"
	for _, o := range []opener{byName(t, "pgxlock"), byName(t, "pqlock")} {
		for _, wake := range []bool{false, true} {
			registry := o.opened(t, dsn, openOptions{registry: sqllock.RegistryOptions{TTL: never}, wake: wake})
			lease, err := registry.TryLock(t.Context(), o.name)
			must(t, err)
			must(t, lease.Unlock(t.Context()))
		}
		_, err := o.open(t.Context(), dsn+" default_transaction_read_only=on", openOptions{})
		if !errors.Is(err, sqllock.ErrReadOnly) {
			t.Errorf("%s: a primary with read-only sessions: %v", o.name, err)
		}
	}
}
