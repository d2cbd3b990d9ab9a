package locktable

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/probe"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/stmt"
	"github.com/sqllock/sqllock/internal/transaction"
	"github.com/sqllock/sqllock/internal/turns"
)

// A Bell lets a release wake a process that waits for the row: see package bell. It is for MySQL and MariaDB.
type Bell interface {
	// Tell sets what is called: report with the keys of locks of which one may have been released, and onFailure, once a minute
	// at most, with why releases wake no process.
	Tell(report func(lockKeys []string), onFailure func(error))
	// Attend is called by a waiter for the lock of a key, whose name is the same on all clients.
	Attend(name, lockKey string) (leave func())
	// Rings reports whether releases are to ring. Mute stops that for a while, since the server refuses what they need.
	Rings() bool
	Mute(why error)
	// IsAnswer reports whether the server has answered a statement with an error.
	IsAnswer(err error) bool
	// Ring rings for some names, in the background. taken reports whether they were seen to be taken.
	Ring(taken bool, names ...string)
}

// ringing is the value that WithBell gives a context.
type ringing struct{}

// WithBell returns a context with which [Open] makes a table whose releases and waiters use b, if the server is known to be
// one where that works, and no pooler stands before it.
func WithBell(ctx context.Context, b Bell) context.Context {
	return context.WithValue(ctx, ringing{}, b)
}

// bells are the bell of a table, and what its releases need to ring.
type bells struct {
	Bell

	release  stmt.Statement // of a row for which no one waits
	database string         // that has the table
	names    sqltext.Names
	region   string
}

// openBell lets the table use the bell of ctx where that works. Elsewhere waiters poll, which is no reason for Open to fail: they
// do so with a bell, too. OnFallback is told why, and what fails later. It returns an error if ctx ends.
func (t *Table) openBell(ctx context.Context, config Config, plain bool) error {
	b, _ := ctx.Value(ringing{}).(Bell)
	if b == nil {
		return nil
	}
	onFailure := func(why error) {
		if config.OnFallback != nil {
			config.OnFallback(fmt.Errorf("%w: %w", ErrUnwoken, why))
		}
	}
	made, err := t.makeBells(ctx, b, plain)
	switch {
	case err != nil && bounded.Ended(ctx) != nil:
		return err
	case err != nil:
		onFailure(err)
		return nil
	}
	t.Releases.bell = made
	b.Tell(t.Poller.Hurry, onFailure)
	return nil
}

var (
	// ErrUnwoken is told to OnFallback: a table with a [Bell] does without it, always or for a while.
	ErrUnwoken = errors.New("releases do not wake waiters, which poll instead")

	errUnknownServer = errors.New("waking needs MySQL or MariaDB, and that Layout does not keep sqllock from asking what the server is")
	errManyServers   = errors.New("sessions may be on several nodes of a cluster, or replicas run the statements themselves (binlog_format=STATEMENT)")
	errSharedSession = errors.New("a pooler gives one session of the server to several connections")
)

// makeBells returns what the bell of a table needs, or why there is none. On Galera, and in groups with several primaries, a
// process would wake only those of the same node.
func (t *Table) makeBells(ctx context.Context, b Bell, plain bool) (made *bells, err error) {
	switch {
	case !plain:
		return nil, errUnknownServer
	case t.Turns.Refused() != nil:
		return nil, errManyServers
	}
	made = &bells{Bell: b, names: t.tableNames, region: t.region}
	made.release, err = stmt.Compile(t.dialect.Statements(t.layout, t.tableNames).Delete+" AND IS_USED_LOCK(:bell) IS NULL", t.dialect, t.region)
	if err != nil {
		return nil, err
	}
	shared, err := dbcall.CallInTime(ctx, t.server, probe.Opening, 0, func(ctx context.Context) (bool, error) {
		return turns.SharesSessions(ctx, t.pool.DB, sessionNumber)
	}, nil)
	if err == nil && shared {
		err = errSharedSession
	}
	if err == nil {
		made.database, err = dbcall.CallInTime(ctx, t.server, probe.Opening, 0, t.askDatabase, nil)
	}
	return made, err
}

// sessionNumber is a question that a proxy leaves to the server: ProxySQL answers CONNECTION_ID() alone itself.
const sessionNumber = "SELECT CONNECTION_ID() + 0"

func (t *Table) askDatabase(ctx context.Context) (string, error) {
	return transaction.On(ctx, t.pool, func(conn *sql.Conn) (string, error) {
		var database sql.NullString
		err := conn.QueryRowContext(ctx, "SELECT DATABASE()").Scan(&database)
		return database.String, err
	})
}

// nameOf returns the name that a process takes while it waits for the row of a key. Names belong to the server, which has
// no other users of such names, and are limited to 64 characters.
func (b *bells) nameOf(lockKey string) string {
	place := cmp.Or(b.names.Schema, b.database)
	sum := sha256.Sum256([]byte(strings.ToLower(place) + "\t" + b.names.Topic(b.region, lockKey)))
	return "sqllock waits " + hex.EncodeToString(sum[:16])
}

// releaseUnheard deletes the row of a claim unless a process has taken its name. doubt is an error that the condition may have:
// the same statement without it is to be sent, and if that has none, the bell is to be muted. Any other error that statement would
// have, too.
func (r *releases) releaseUnheard(ctx context.Context, c stmt.Claim, name string) (done change, doubt, err error) {
	text, args, err := r.bell.release.Bind(stmt.Values{Claim: c, Bell: name})
	if err != nil {
		return done, nil, err
	}
	sent := false
	try := r.pool.Try()
	for try.Next(ctx) {
		var result sql.Result
		sent = true
		if result, try.Err = try.Conn.ExecContext(ctx, text, args...); try.Err == nil {
			done.n, try.Err = result.RowsAffected()
		}
	}
	done.resent = try.Resent
	mayBeItsOwn := sent && (r.server.IsOf(try.Err, sqltext.Unknown) || r.server.IsOf(try.Err, sqltext.Refused))
	if !mayBeItsOwn || bounded.Ended(ctx) != nil {
		return done, nil, try.Err
	}
	return change{resent: done.resent || !r.bell.IsAnswer(try.Err)}, try.Err, nil
}

// ringAll rings for rows that were released together.
func (b *bells) ringAll(claims ...stmt.Claim) {
	if !b.Rings() {
		return
	}
	names := make([]string, 0, len(claims))
	for _, c := range claims {
		for _, lockKey := range c.LockKeys() {
			names = append(names, b.nameOf(lockKey))
		}
	}
	b.Ring(false, names...)
}
