package probe

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/transaction"
)

// A Question is about the server of a pool and its lock table.
type Question struct {
	Pool    transaction.Pool
	Server  dbcall.Server
	Dialect sqltext.Dialect
	Names   sqltext.Names

	ASCII      bool // whether all LOCK_KEYs and the region are ASCII
	Unverified bool // whether the server may be one that sqllock does not support
}

// Facts are what is known of a server and its lock table.
type Facts struct {
	Layout dialect.Layout
	// Collation is that of LOCK_KEY if it takes different keys for one, or "".
	Collation string
	MariaDB   bool
	Plain     bool // it is known to be MySQL or MariaDB and no other engine, and of which cluster
	Vitess    bool
	// Cluster is the one that the server belongs to, or nil if it has not answered: it may belong to one.
	Cluster *Cluster
	// Dialect is that of the server, of its cluster and of the table. Anywhere is the same without the condition that the
	// server is a member of its cluster.
	Dialect, Anywhere sqltext.Dialect
	File              File
}

// Given are the facts if the layout is given, and nothing is asked.
func Given(d sqltext.Dialect, layout dialect.Layout) Facts {
	if d.Parks() { // it is not known whether the server and the table are such that it can
		d = d.WithoutParking()
	}
	return Facts{Layout: layout, Dialect: d, Anywhere: d}
}

// Opening is the limit of all questions.
var Opening = dbcall.Policy{Races: dbcall.Always, Pinned: time.Second, Answer: 10 * time.Second}

// errNotReady says what was waited for until ctx ended.
var errNotReady = errors.New("the database is not ready")

// Ask asks the database what it is and what its tables are like, again and again while it is busy. It returns an error if
// the table cannot be used.
func (q Question) Ask(ctx context.Context) (Facts, error) {
	found, err := dbcall.CallInTime(ctx, q.Server, Opening, 0, func(ctx context.Context) (finding, error) {
		return transaction.On(ctx, q.Pool, func(conn *sql.Conn) (finding, error) {
			return inspector{conn, q.Dialect, q.Names, q.ASCII, q.Unverified}.inspect(ctx)
		})
	}, nil)
	if dbcall.Is(err, dbcall.Ended) { // it is the database that the caller has waited for
		err = &dbcall.Error{Kind: dbcall.NoAnswer, Err: fmt.Errorf("%w: %w", errNotReady, err)}
	}
	if err != nil {
		return Facts{}, err
	}
	facts := found.facts(q.Dialect)
	if c := found.cluster; c != nil && c.Uncommitted {
		return Facts{}, &dbcall.Error{Kind: dbcall.WrongSession, Err: errUncommitted}
	} else if c != nil && c.Session != "" {
		return Facts{}, &dbcall.Error{Kind: dbcall.WrongSession, Err: fmt.Errorf("%w %s", errSession, c.Session)}
	}
	facts.File, err = q.findFile(ctx, facts.Layout)
	return facts, err
}

// ordersVersions matches a PostgreSQL whose index has the versions of a row in the order of their places: 12 and newer.
var ordersVersions = regexp.MustCompile(`^PostgreSQL (1[2-9]|[2-9]\d|\d{3})`)

// facts returns what was found, with the dialect that follows from it.
func (f finding) facts(d sqltext.Dialect) Facts {
	facts := Facts{Layout: f.layout, Collation: f.collation, MariaDB: isMariaDB(f.server), Plain: f.cluster != nil && (isMariaDB(f.server) || EngineOf(f.server).Name == "MySQL"), Vitess: isVitess(f.server), Cluster: f.cluster}
	facts.Anywhere = d.WithKey(f.key, f.regionFirst)
	facts.Dialect = facts.Anywhere
	if d.Parks() && (f.partitioned || !ordersVersions.MatchString(f.server)) {
		facts.Anywhere = facts.Anywhere.WithoutParking()
		facts.Dialect = facts.Anywhere
	}
	if f.sequence {
		facts.Dialect = facts.Dialect.WithSequence()
	}
	if facts.Vitess {
		facts.Dialect = facts.Dialect.OnVitess()
		facts.Anywhere.Outside = facts.Dialect.Outside
	}
	if f.cluster == nil {
		return facts
	}
	switch {
	case f.cluster.Galera:
		facts.Dialect = facts.Dialect.InGalera(f.cluster.UUID, facts.MariaDB)
	case f.cluster.Member == "ONLINE":
		facts.Dialect = facts.Dialect.InGroup()
	}
	if f.cluster.ReadsLate() {
		facts.Dialect = facts.Dialect.AwaitingGroup()
	}
	return facts
}
