package session

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/poll"
	"github.com/sqllock/sqllock/internal/probe"
	"github.com/sqllock/sqllock/internal/sqltext"
)

// Pools are the pools over one target, and how acquisitions use them.
type Pools struct {
	DB *sqlx.DB
	// Acquirers have sessions that are SERIALIZABLE, for acquisitions. It is nil if there are none, and DB itself if
	// its sessions are.
	Acquirers *sqlx.DB
	// Turns connects when it is used. It is nil for a database that has no turns, or behind a pooler.
	Turns *sqlx.DB
	// MultiStatements reports whether DB takes several statements in one message.
	MultiStatements bool
	// Bell wakes waiters, or is nil.
	Bell Bell
	// Watcher reports writes, or is nil.
	Watcher Watcher
	// Pooler says why the settings of sessions are not relied on. It is nil if they are.
	Pooler error
}

// A Need says what pools are wanted.
type Need struct {
	Connections int  // how many at most, in all pools
	Acquirers   bool // sessions that are SERIALIZABLE: if need be, a pool of half of the connections
	Impatient   bool // a connection whose answer takes longer than patience is dead
	BriefWaits  bool // see [Settings]
	Wake        bool // a Bell, where the target has one
	Create      bool // SQLite: create a file that does not exist
	Unverified  bool // go on with an engine that sqllock does not support
}

// Connect opens the pools, and checks that the database answers. Behind a pooler that does not keep the settings of a
// session it connects without them. An engine that refuses the settings, and is not supported, is an
// [sqllock.ErrInvalid] that names it. With Unverified, such an engine gets them without what only MariaDB is to read. If
// it refuses these as well, the error is the engine's, and names it, too.
func (t Target) Connect(ctx context.Context, n Need) (*Pools, error) {
	p, err := t.connectPools(ctx, n)
	if err == nil || !refusesSettings(err) {
		return p, err
	}
	if n.Unverified {
		return t.connectUnsupported(ctx, n, err)
	}
	if refusal := t.refusal(ctx); errors.Is(refusal, failure.ErrInvalid) {
		err = refusal // any other error is that of the question, and not why there is no connection
	}
	return p, err
}

// refusesSettings reports whether err may be how an engine refuses the settings of a session: its cause is not known, or
// is a parameter. An ErrInvalid says what the server is.
func refusesSettings(err error) bool {
	cure := failure.CureOf(err)
	return !errors.Is(err, failure.ErrInvalid) && (cure == nil || cure.IsOfParameter())
}

// refusal asks the server what it is, on a session without settings. It returns nil if sqllock supports it, and an
// ErrInvalid if not.
func (t Target) refusal(ctx context.Context) error {
	db, err := t.plain()
	if err != nil {
		return nil // the DSN is for Open alone
	}
	defer func() { _ = db.Close() }() // it was only read from
	ctx, cancel := context.WithTimeout(ctx, HostTimeout)
	defer cancel()
	return failure.Of(probe.CheckServer(ctx, db, sqltext.Of(t.Dialect), "", false), "")
}

// connectUnsupported is connectPools for an engine that sqllock does not support. It returns refusal if the server is
// another one, and adds to each error what the server is.
func (t Target) connectUnsupported(ctx context.Context, n Need, refusal error) (*Pools, error) {
	version := t.unsupported(ctx)
	if version == "" {
		return nil, refusal
	}
	t.notMariaDB = true
	p, err := t.connectPools(ctx, n)
	if err != nil {
		err = fmt.Errorf("%w (the database says that it is %q, which sqllock does not support)", err, version)
	}
	return p, err
}

// unsupported returns what the server says that it is, or "" if sqllock supports it, or it does not say it.
func (t Target) unsupported(ctx context.Context) (version string) {
	db, err := t.plain()
	if err != nil {
		return ""
	}
	defer func() { _ = db.Close() }() // it was only read from
	ctx, cancel := context.WithTimeout(ctx, HostTimeout)
	defer cancel()
	d := sqltext.Of(t.Dialect)
	err = db.QueryRowContext(ctx, d.Statements(dialect.Spring6, sqltext.Names{}).Version).Scan(&version)
	if err != nil || probe.EngineOf(version).RefusalOf(d) == "" {
		return ""
	}
	return version
}

// plain returns a pool of sessions without settings.
func (t Target) plain() (*sql.DB, error) {
	if t.Plain != nil {
		return sql.OpenDB(t.Plain), nil
	}
	return sql.Open(t.Driver, t.Source)
}

func (t Target) connectPools(ctx context.Context, n Need) (*Pools, error) {
	p := new(Pools)
	s := Settings{BriefWaits: n.BriefWaits, kept: new(atomic.Bool)}
	if n.Impatient {
		s.Patience = patience
	}
	var err error
	s.Serializable = n.Acquirers && t.SerializablePool
	p.DB, err = t.connect(ctx, s, n.Create, n.Connections)
	if err == nil && t.MultiStatements != nil {
		p.MultiStatements, err = t.MultiStatements(ctx, p.DB.DB)
	}
	if err == nil && s.Serializable {
		p.Acquirers = p.DB // each statement that acquires returns its isolation
	}
	kept := !t.HasIsolation // a pooler of MySQL knows what is prepared
	if err == nil && t.HasIsolation {
		kept, err = p.checkSettings(ctx, t)
	}
	if err == nil && n.Acquirers && t.HasIsolation {
		err = p.addAcquirers(ctx, t, s, n.Connections)
	}
	if err == nil {
		p.Turns, err = t.turns()
	}
	if err == nil && n.Wake && t.Bell != nil {
		err = p.addBell(t)
	}
	if err == nil && t.Watcher != nil {
		p.Watcher = t.Watcher(t.Source)
	}
	if err == nil {
		s.kept.Store(kept)
		return p, nil
	}
	if !isPooler(err) {
		return nil, errors.Join(err, p.Close())
	}
	p.Pooler = fmt.Errorf("something in front of the server does not keep the settings of a session: %w", err)
	if err := p.Close(); err != nil {
		return nil, err
	}
	s.Pooled = true
	if p.DB, err = t.connect(ctx, s, n.Create, n.Connections); err != nil {
		return nil, err
	}
	return p, nil
}

// addAcquirers opens the second pool, which takes half of the connections, and checks that its sessions are what they
// should be.
func (p *Pools) addAcquirers(ctx context.Context, t Target, s Settings, connections int) (err error) {
	s.Serializable = true
	if p.Acquirers, err = t.connect(ctx, s, false, connections/2); err != nil {
		return err
	}
	setLimit(p.DB, connections-connections/2)
	var isolation string
	if err := p.Acquirers.GetContext(ctx, &isolation, "SELECT current_setting('transaction_isolation')"); err != nil {
		return err
	}
	if isolation != "serializable" {
		return fmt.Errorf("%w: the isolation is %q", errIgnored, isolation)
	}
	return nil
}

// addBell opens the pool of the session that sleeps. It connects when it is used, and keeps no connection for long.
func (p *Pools) addBell(t Target) error {
	sessions, err := t.open(t.Source, Settings{Unlimited: true}, 1)
	if err == nil {
		sessions.SetConnMaxIdleTime(turnIdle)
		p.Bell = t.Bell(sessions.DB, p.DB.DB)
	}
	return err
}

// TimeoutSetting is the setting by which it is known whether a server of PostgreSQL, or what stands before it, keeps those of
// a session.
const TimeoutSetting = "idle_in_transaction_session_timeout"

// checkSettings checks that a session has got a setting that was sent. If the DSN names it, nothing is known, and
// kept is false.
func (p *Pools) checkSettings(ctx context.Context, t Target) (kept bool, err error) {
	if t.SetsTimeout {
		return false, nil
	}
	var ms string
	if err := p.DB.GetContext(ctx, &ms, "SELECT setting FROM pg_settings WHERE name = '"+TimeoutSetting+"'"); err != nil {
		return false, err
	}
	if ms != postgresDefaults[TimeoutSetting] {
		return false, fmt.Errorf("%w: %s is %s ms", errIgnored, TimeoutSetting, ms)
	}
	return true, nil
}

// patience is longer than any statement of a lock may take.
const patience = 30 * time.Second

// errIgnored is why a server that accepted the settings of a session is taken for a pooler.
var errIgnored = errors.New("the settings of the session were ignored")

// isPooler reports whether err is how a pooler deals with parameters of the session that it does not keep: PgBouncer
// refuses them with protocol_violation, unless it is told to ignore them, and Amazon's RDS Proxy with
// feature_not_supported. Then a session may have the prepared statements of another client, or may lack our own.
func isPooler(err error) bool {
	var state interface{ SQLState() string }
	if !errors.As(err, &state) {
		return errors.Is(err, errIgnored)
	}
	switch state.SQLState() {
	case "08P01", // protocol_violation
		"0A000", // feature_not_supported
		"42P05", // duplicate_prepared_statement
		"26000": // invalid_sql_statement_name
		return true
	default:
		return false
	}
}

// closeTimeout limits how long a database that does not answer keeps Close.
const closeTimeout = 10 * time.Second

// Watching returns a context with which [sqllock.NewRepository] makes a repository whose waiters poll when the database is
// written to, or when a release rings.
func (p *Pools) Watching(ctx context.Context) context.Context {
	if p.Bell != nil {
		ctx = locktable.WithBell(ctx, p.Bell)
	}
	if p.Watcher != nil {
		ctx = poll.WithWatcher(ctx, p.Watcher)
	}
	return ctx
}

// Close closes the pools.
func (p *Pools) Close() (err error) {
	if p.Bell != nil {
		err = p.Bell.Close()
	}
	if p.Watcher != nil {
		err = errors.Join(err, p.Watcher.Close())
	}
	for _, db := range []**sqlx.DB{&p.Turns, &p.Acquirers, &p.DB} {
		if *db != nil {
			err = errors.Join(err, (*db).Close())
			*db = nil
		}
	}
	return err
}
