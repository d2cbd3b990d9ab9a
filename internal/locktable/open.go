package locktable

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
)

// Open returns the table. Unless the layout is given, it asks the database what it is and what
// its tables are like, again and again while the database is busy.
func Open(ctx context.Context, config Config) (*Table, error) {
	t := &Table{
		pool: pool{db: config.DB, dialect: config.Dialect}, dialect: config.Dialect, errors: config.Dialect.Classify,
		names: config.Names, region: config.Region, layout: config.Layout, level: config.Isolation,
	}
	if err := t.holders.seed(config.ClientID); err != nil {
		return nil, &Error{opening.op, Failed, err}
	}
	t.tokens.seed(config.Names.Fence)
	t.polls.read, t.polled = t.pollMany, newTurns(maxAlone)
	mariaDB := false
	if t.layout == 0 {
		found, err := t.inspect(ctx, config.ASCII)
		if err != nil {
			return nil, err
		}
		t.layout, t.collation, mariaDB = found.layout, found.collation, isMariaDB(found.server)
		if found.sequence {
			t.dialect = t.dialect.WithSequence()
		}
		if err := t.adapt(found.cluster, config, mariaDB); err != nil {
			return nil, err
		}
	}
	if t.dialect.Statements(t.layout, t.names).Isolation != "" {
		t.acquirers = newAcquirers(config.Acquirers, config.Dialect, config.OnFallback)
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
	// Oracle's MySQL has a statement wait for a pinned row as long as the session says,
	// 50 s by default. MariaDB's statements limit that. What an unknown server does is not
	// known either.
	t.readBeforeAcquire = !t.dialect.Returning && !t.dialect.ReturnsHolder && !mariaDB
	t.refusalsLockRows = mariaDB && t.acquirers == nil && (!config.Autocommit || !t.dialect.ReturnsHolder)
	var err error
	message := ""
	if config.MultiStatements && !config.Autocommit {
		message = messageLevel(t.level)
		t.refusalsLockRows = false // for no longer than the server works
	}
	if t.statements, err = compileAll(t.dialect, t.layout, t.names, t.region, message, t.acquirers != nil || config.Autocommit && t.dialect.ReturnsHolder); err != nil {
		return nil, &Error{opening.op, Failed, err}
	}
	anywhere := config.Dialect.Statements(t.layout, t.names)
	t.statements.guards.anywhere, err = compile(anywhere.GuardByWriting, t.dialect, t.region)
	if err == nil {
		t.statements.guardsAll.anywhere, err = compile(anywhere.GuardAllByWriting, t.dialect, t.region)
	}
	if err != nil {
		return nil, &Error{opening.op, Failed, err}
	}
	// Without round trips, one transaction for two statements is cheaper than one for each.
	t.transaction = !config.Autocommit || t.dialect.Embedded && t.statements.draw.text != ""
	t.makeVerbs(!config.DisableBatching)
	return t, nil
}

// adapt prepares t for the cluster that the server has said it belongs to. found is nil if it has
// not answered: then the first guard asks.
func (t *Table) adapt(found *Cluster, config Config, mariaDB bool) error {
	if found == nil {
		return nil
	}
	if found.Uncommitted {
		return &Error{opening.op, WrongSession, errUncommitted}
	}
	if found.Session != "" {
		return &Error{opening.op, WrongSession, fmt.Errorf("%w %s", errSession, found.Session)}
	}
	if found.RefusesSerializable() && config.Isolation == sql.LevelSerializable {
		if !config.Autocommit {
			return &Error{opening.op, WrongIsolation, errSerializable}
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
		one: t.acquireClaim, many: t.acquireMany, errors: t.errors, policy: acquiring, onLeave: t.orphans.add, onOrphan: t.discard,
		blocked: new(blockedKeys),
	}
	t.releases = batched[bool]{one: t.releaseOne, many: t.releaseMany, errors: t.errors, policy: releasing}
	if batching {
		t.acquires.makeBatcher(&t.keepsValues)
		t.releases.makeBatcher(&t.keepsValues)
		t.reads = newTurns(maxAlone)
	}
}

// errNotReady says what Open has waited for until ctx ended.
var errNotReady = errors.New("the database is not ready")

func (t *Table) inspect(ctx context.Context, ascii bool) (finding, error) {
	i := inspector{t.pool.db, t.dialect, t.names, ascii}
	found, err := callAlone(ctx, t.errors, opening, 0, i.inspect, nil)
	if Is(err, Ended) { // it is the database that the caller has waited for
		err = &Error{opening.op, NoAnswer, fmt.Errorf("%w: %w", errNotReady, err)}
	}
	return found, err
}

// findFile asks the database for its file.
func (t *Table) findFile(ctx context.Context) (file, error) {
	question := t.dialect.Statements(t.layout, t.names).File
	if question == "" {
		return file{}, nil
	}
	return callAlone(ctx, t.errors, opening, 0, func(ctx context.Context) (f file, err error) {
		if err := t.pool.db.GetContext(ctx, &f.path, question); err != nil {
			return file{}, err
		}
		if f.was, err = os.Stat(f.path); err != nil {
			return file{}, nil //nolint:nilerr // it is not this machine's to look at
		}
		return f, nil
	}, nil)
}
