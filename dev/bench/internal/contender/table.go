package contender

import (
	"context"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/locktable"
)

// A TableSession is a session of sqllock's that opens its lock table.
type TableSession interface {
	Table(ctx context.Context) (*locktable.Table, error)
}

// Tables are sqllock on each kind of server, for operations that only its table has.
func Tables() []Contender {
	var all []Contender
	for _, d := range []database{postgresPGX, mariaDB} {
		all = append(all, variant{name: "repository"}.contender(d))
	}
	return all
}

// Table implements TableSession.
func (s *sqllockSession) Table(ctx context.Context) (*locktable.Table, error) {
	names, err := dialect.NamesFor("")
	if err != nil {
		return nil, err
	}
	return locktable.Open(ctx, locktable.Config{DB: s.db, Dialect: s.dialect, Names: names, Region: "DEFAULT"})
}
