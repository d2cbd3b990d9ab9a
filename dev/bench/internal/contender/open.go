package contender

import (
	"context"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/bench/internal/durable"
	"github.com/sqllock/sqllock/drivers/mysqllock"
	"github.com/sqllock/sqllock/drivers/pgxlock"
	"github.com/sqllock/sqllock/drivers/pqlock"
	"github.com/sqllock/sqllock/drivers/sqlitelock"
)

// openConnections is how many connections Open has at most.
const openConnections = 5

// opened are the registries of pgxlock.Open and the like: sqllock as a newcomer has it; and the same
// for those who know its single locks only.
func opened() []Contender {
	var all []Contender
	for _, d := range []database{postgresPGX, postgresPQ, mariaDB, sqlite} {
		all = append(all, openedOn(d, sqllock.RegistryOptions{}, false)...)
	}
	oracle := openedOn(oracleMySQL, sqllock.RegistryOptions{}, false)[0]
	oracle.Quick, oracle.Loads = false, []string{"pairs 1", "pairs 64", "hand-off"}
	all = append(all, oracle)
	for _, d := range []database{postgresPGX, mariaDB, oracleMySQL} {
		woken := openedOn(d, sqllock.RegistryOptions{}, true)[0]
		woken.Name, woken.Settings = "sqllock open with wake/"+d.short, "the same, with Wake"
		woken.Quick, woken.Loads = false, []string{"pairs 1", "pairs 64", "hand-off"}
		all = append(all, woken)
	}
	nameless := openedOn(postgresPGX, sqllock.RegistryOptions{DisableNames: true}, false)[0]
	nameless.Name, nameless.Settings = "sqllock open, no names/pgx", "the same, with DisableNames"
	nameless.Quick, nameless.Loads = false, []string{"waiters"}
	return append(all, nameless)
}

// open is the function Open for a database. SQLite has no option for wake-ups.
func open(ctx context.Context, d database, at Place, registry sqllock.RegistryOptions, wake bool) (*sqllock.Registry, error) {
	registry.TTL = at.TTL
	switch d.driver {
	case postgresPGX.driver:
		return pgxlock.Open(ctx, at.DSN, &pgxlock.Options{Registry: registry, Wake: wake})
	case postgresPQ.driver:
		return pqlock.Open(ctx, at.DSN, &pqlock.Options{Registry: registry, Wake: wake})
	case mariaDB.driver:
		return mysqllock.Open(ctx, at.DSN, &mysqllock.Options{Registry: registry, Wake: wake})
	default:
		// As the other contenders on SQLite, its commits survive a crash of the machine.
		dsn := "file:" + at.DSN + "/bench.db?_pragma=synchronous(FULL)"
		return sqlitelock.Open(ctx, dsn, &sqlitelock.Options{Registry: registry})
	}
}

// openedOn returns a contender with joint locks, and the same without.
func openedOn(d database, options sqllock.RegistryOptions, wake bool) []Contender {
	pkg := map[string]string{"pgx": "pgxlock", "postgres": "pqlock", "mysql": "mysqllock", "sqlite": "sqlitelock"}[d.driver]
	settings := pkg + ".Open, by its defaults: a pool of its own, of five connections"
	if d.kind == durable.SQLite {
		settings += "; synchronous(FULL)"
	}
	session := func(ctx context.Context, at Place) (*openedSession, error) {
		registry, err := open(ctx, d, at, options, wake)
		return &openedSession{registry}, err
	}
	joint := Contender{
		Name:     "sqllock open/" + d.short,
		Library:  "github.com/sqllock/sqllock",
		Version:  "this checkout",
		Database: d.kind,
		Settings: settings,
		Quick:    true,
		Loads:    append([]string{tenKeys}, anything...),
		Prepare:  func(ctx context.Context, at Place) error { return d.with(ctx, at, d.migrate) },
		Open: func(ctx context.Context, at Place) (Session, error) {
			s, err := session(ctx, at)
			return &jointSession{s}, err
		},
	}
	single := joint
	single.Name = "sqllock open, single locks/" + d.short
	single.Settings = "the same; a plain lock for each key"
	single.Loads = []string{tenKeys}
	single.Open = func(ctx context.Context, at Place) (Session, error) { return session(ctx, at) }
	return []Contender{joint, single}
}

type openedSession struct{ registry *sqllock.Registry }

// Connections implements [Session]: it is how many there may be.
func (s *openedSession) Connections() int { return openConnections }

func (s *openedSession) Lock(ctx context.Context, key string) (Unlock, error) {
	return Unlocking(s.registry.Lock(ctx, key))
}

// Registry is for locks of more than one key.
func (s *openedSession) Registry() *sqllock.Registry { return s.registry }

func (s *openedSession) Close() error { return s.registry.Close(context.Background()) }

// A jointSession has joint locks, too.
type jointSession struct{ *openedSession }

// LockAll implements [JointSession].
func (s *jointSession) LockAll(ctx context.Context, keys []string) (Unlock, error) {
	lock, err := s.registry.ObtainAll(keys...)
	if err != nil {
		return nil, err
	}
	return Unlocking(lock.Lock(ctx))
}

// Unlocking returns the result of a call that acquires a lease.
func Unlocking(lease *sqllock.Lease, err error) (Unlock, error) {
	if err != nil {
		return nil, err
	}
	return lease.Unlock, nil
}
