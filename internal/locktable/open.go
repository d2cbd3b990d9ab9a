package locktable

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/sqllock/sqllock/internal/expiring"
	"github.com/sqllock/sqllock/internal/transaction"
)

// Open returns the table. Unless the layout is given, it asks the database what it is and what its tables are like,
// again and again while the database is busy.
func Open(ctx context.Context, config Config) (*Table, error) {
	if config.Dialect.LacksSerializable && config.Isolation == sql.LevelSerializable {
		config.Isolation = sql.LevelReadCommitted
	}
	t := &Table{
		pool: transaction.Pool{DB: config.DB, Dialect: &config.Dialect, Gate: transaction.GateOf(config.DB)}, dialect: config.Dialect, errors: config.Dialect.Classify,
		names: config.Names, region: config.Region, layout: config.Layout, level: config.Isolation, patience: PatienceOf(ctx),
		watcher: watcherOf(ctx),
	}
	if err := t.holders.seed(config.ClientID); err != nil {
		return nil, &Error{Op: opening.op, Kind: Failed, Err: err}
	}
	t.tokens.seed(config.Names.Fence)
	t.polls.read, t.polled = t.pollMany, newLimiter(maxAlone)
	mariaDB := false
	if t.layout == 0 {
		found, err := t.inspect(ctx, config)
		if err != nil {
			return nil, err
		}
		t.layout, t.collation, mariaDB = found.layout, found.collation, isMariaDB(found.server)
		t.dialect, config.Dialect = t.dialect.WithKey(found.key, found.regionFirst), config.Dialect.WithKey(found.key, found.regionFirst)
		if found.sequence {
			t.dialect = t.dialect.WithSequence()
		}
		if isVitess(found.server) {
			t.dialect = t.dialect.OnVitess()
			config.Dialect.Outside = t.dialect.Outside // of the pool
			t.turns.refused = errNodes                 // GET_LOCK is granted by the tablet that is the primary
		}
		if mariaDB && found.cluster == nil { // it has not answered, and may be a node of Galera: see below
			config.MultiStatements = false
		}
		if err := t.adapt(found.cluster, config, mariaDB); err != nil {
			return nil, err
		}
	}
	if t.dialect.Statements(t.layout, t.names).Isolation != "" {
		t.acquirers = newAcquirers(t.pool, config.Acquirers, config.OnFallback)
	}
	if config.Layout == 0 {
		var err error
		if t.file, err = t.findFile(ctx); err != nil {
			return nil, err
		}
		if err := t.checkConnections(ctx, config.MultiStatements); err != nil {
			return nil, err
		}
	}
	// Oracle's MySQL has a statement wait for a pinned row as long as the session says, 50 s by default. MariaDB's
	// statements limit that. What an unknown server does is not known either.
	t.readBeforeAcquire = !t.dialect.Returning && !t.dialect.ReturnsHolder && !mariaDB
	t.refusalsLockRows = mariaDB && t.acquirers == nil && (!config.Autocommit || !t.dialect.ReturnsHolder)
	var err error
	var in levels
	// Of 5 400 acquisitions that were sent to Galera as messages three were of a lock that another caller had: it may
	// abort a transaction in the middle of one, and say nothing of it.
	if config.MultiStatements && !t.home.Galera {
		in.joint = messageLevel(t.level)
	}
	if !config.Autocommit && in.joint != "" {
		in.acquire = in.joint
		t.refusalsLockRows = false // for no longer than the server works
	}
	if t.statements, err = compileAll(t.dialect, t.layout, t.names, t.region, in, t.acquirers != nil || config.Autocommit && t.dialect.ReturnsHolder); err != nil {
		return nil, &Error{Op: opening.op, Kind: Failed, Err: err}
	}
	anywhere := config.Dialect.Statements(t.layout, t.names)
	t.statements.guards.anywhere, err = compile(anywhere.GuardByWriting, t.dialect, t.region)
	if err == nil {
		t.statements.guardsAll.anywhere, err = compile(anywhere.GuardAllByWriting, t.dialect, t.region)
	}
	if err != nil {
		return nil, &Error{Op: opening.op, Kind: Failed, Err: err}
	}
	t.openTurns(config)
	// Without round trips, one transaction for two statements is cheaper than one for each.
	t.transaction = !config.Autocommit || t.dialect.Embedded && t.statements.draw.text != ""
	t.makeVerbs(!config.DisableBatching)
	return t, nil
}

// adapt prepares t for the cluster that the server has said it belongs to. found is nil if it has not answered: then
// the first guard asks.
func (t *Table) adapt(found *Cluster, config Config, mariaDB bool) error {
	if found == nil {
		return nil
	}
	if found.Uncommitted {
		return &Error{Op: opening.op, Kind: WrongSession, Err: errUncommitted}
	}
	if found.Session != "" {
		return &Error{Op: opening.op, Kind: WrongSession, Err: fmt.Errorf("%w %s", errSession, found.Session)}
	}
	if found.RefusesSerializable() && config.Isolation == sql.LevelSerializable {
		if !config.Autocommit {
			return &Error{Op: opening.op, Kind: WrongIsolation, Err: errSerializable}
		}
		t.level = sql.LevelReadCommitted // of joint claims, for which no option asks
	}
	t.certification.know(*found)
	switch {
	case found.Galera:
		t.dialect = t.dialect.InGalera(found.UUID, mariaDB)
	case found.Member == "ONLINE":
		t.dialect = t.dialect.InGroup()
	}
	if found.ReadsLate() {
		t.dialect = t.dialect.AwaitingGroup()
	}
	t.home = *found
	return nil
}

// makeVerbs makes the verbs that are sent for one row or for many.
func (t *Table) makeVerbs(batching bool) {
	t.acquires = batched[Result]{
		one: t.acquireOne, many: t.acquireMany, errors: t.errors, policy: acquiring, onLeave: t.inFlight.add, onLate: t.cleanUpLate,
		blocked: new(expiring.Map[string, struct{}]), patience: t.Patience(),
	}
	t.releases = batched[bool]{
		one: t.releaseOne, many: t.releaseMany, errors: t.errors, policy: releasing, onLeave: t.inFlight.add, onLate: t.releaseLate,
		patience: t.Patience(),
	}
	if batching {
		t.acquires.makeBatcher(&t.keepsValues)
		t.releases.makeBatcher(&t.keepsValues)
		t.reads = newLimiter(maxAlone)
	}
}

// errNotReady says what Open has waited for until ctx ended.
var errNotReady = errors.New("the database is not ready")

func (t *Table) inspect(ctx context.Context, config Config) (finding, error) {
	found, err := callAlone(ctx, t, opening, 0, func(ctx context.Context) (finding, error) {
		return transaction.On(ctx, t.pool, func(conn *sql.Conn) (finding, error) {
			return inspector{conn, t.dialect, t.names, config.ASCII, config.Unverified}.inspect(ctx)
		})
	}, nil)
	if Is(err, Ended) { // it is the database that the caller has waited for
		err = &Error{Op: opening.op, Kind: NoAnswer, Err: fmt.Errorf("%w: %w", errNotReady, err)}
	}
	return found, err
}

// A file is that of a database that has one, SQLite's, as it was when the table was opened. If it is removed or
// replaced, connections go on with what they have open, which no other process sees. The zero value is always there:
// a server's, a database in memory, or a file that another machine has.
type file struct {
	path string
	was  fs.FileInfo
}

// isGone reports whether the path leads to no file, or to another one. The system may have an error of its own to
// say, which decides nothing.
func (f file) isGone() bool {
	if f.was == nil {
		return false
	}
	is, err := os.Stat(f.path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(f.was, is)
}

var errGone = errors.New("the file of the database was removed or replaced while it was open, and other processes do not see what is written to it: create another repository, over a new pool")

// findFile asks the database for its file.
func (t *Table) findFile(ctx context.Context) (file, error) {
	question := t.dialect.Statements(t.layout, t.names).File
	if question == "" {
		return file{}, nil
	}
	return callAlone(ctx, t, opening, 0, func(ctx context.Context) (f file, err error) {
		if err := t.pool.DB.QueryRowContext(ctx, question).Scan(&f.path); err != nil { // SQLite's
			return file{}, err
		}
		if f.was, err = os.Stat(f.path); err != nil {
			return file{}, nil //nolint:nilerr // it is not this machine's to look at
		}
		return f, nil
	}, nil)
}

var (
	errNoMessages = errors.New("the option MultiStatements: the driver does not send several statements with arguments in one message: " +
		"set multiStatements=true and interpolateParams=true in the DSN")
	errOtherTable = errors.New("the option Acquirers: its pool uses a different lock table than the repository's pool")
)

// checkConnections checks that the connections are what the options say. Otherwise the first acquisition would find
// out, or nothing would: a row could be acquired in another table than the one that it is released from. messages
// reports whether the pool is to take several statements in one message.
func (t *Table) checkConnections(ctx context.Context, messages bool) error {
	_, err := callAlone(ctx, t, opening, 0, func(ctx context.Context) (struct{}, error) {
		if messages {
			none, err := transaction.On(ctx, t.pool, func(conn *sql.Conn) (none struct{}, err error) { return none, checkMessages(ctx, conn) })
			if err != nil {
				return none, err
			}
		}
		if t.acquirers != nil && t.acquirers.pool.DB != t.pool.DB {
			return struct{}{}, t.checkTables(ctx)
		}
		return struct{}{}, nil
	}, nil)
	return err
}

// checkMessages sends two statements with arguments in one message.
func checkMessages(ctx context.Context, db executor) error {
	err := sendMessage(ctx, db)
	if err == nil {
		return nil
	}
	if _, plain := db.ExecContext(ctx, "SELECT 1"); plain != nil {
		return err // it is not about messages
	}
	return &Error{Op: opening.op, Kind: WrongSession, Err: fmt.Errorf("%w: %w", errNoMessages, err)}
}

func sendMessage(ctx context.Context, db executor) error {
	rows, err := db.QueryContext(ctx, "SELECT ?; SELECT ?", 1, 2)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err reports what is wrong
	answers := 0
	for more := true; more; more = rows.NextResultSet() {
		for rows.Next() {
			answers++
		}
	}
	if err := rows.Err(); err != nil || answers == 2 {
		return err
	}
	return fmt.Errorf("%w: %d of 2 came", errNoOutcome, answers)
}

// checkTables compares the lock tables of two pools of PostgreSQL or MariaDB.
func (t *Table) checkTables(ctx context.Context) error {
	mine, err := t.placeOf(ctx, t.pool)
	if err != nil {
		return ctx.Err() // another kind of server, which cannot say it
	}
	theirs, err := t.placeOf(ctx, t.acquirers.pool)
	if err != nil {
		return fmt.Errorf("ask Acquirers: %w", err)
	}
	if mine != theirs {
		return &Error{Op: opening.op, Kind: WrongSession, Err: errOtherTable}
	}
	return nil
}

// A place is where a table is.
type place struct {
	server   sql.NullString // when it started, or its address: no other one has the same
	database sql.NullString
	table    sql.NullInt64
}

func (t *Table) placeOf(ctx context.Context, pool transaction.Pool) (place, error) {
	return transaction.On(ctx, pool, func(conn *sql.Conn) (p place, err error) {
		if t.dialect.ReturnsHolder { // MariaDB
			err = conn.QueryRowContext(ctx, "SELECT CONCAT(@@hostname, ':', @@port, @@datadir), DATABASE()").Scan(&p.server, &p.database)
			return p, err
		}
		err = conn.QueryRowContext(ctx, "SELECT CAST(EXTRACT(EPOCH FROM pg_postmaster_start_time()) AS TEXT), current_database(), CAST(to_regclass($1) AS OID)", t.names.Lock).
			Scan(&p.server, &p.database, &p.table)
		return p, err
	})
}
