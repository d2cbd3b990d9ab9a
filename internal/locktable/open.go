package locktable

import (
	"cmp"
	"context"
	"database/sql"
	"errors"

	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/expiring"
	"github.com/sqllock/sqllock/internal/names"
	"github.com/sqllock/sqllock/internal/poll"
	"github.com/sqllock/sqllock/internal/probe"
	"github.com/sqllock/sqllock/internal/stmt"
	"github.com/sqllock/sqllock/internal/transaction"
	"github.com/sqllock/sqllock/internal/turns"
)

// Open returns the table. Unless the layout is given, it asks the database what it is and what its tables are like,
// again and again while the database is busy.
func Open(ctx context.Context, config Config) (*Table, error) {
	if config.Dialect.LacksSerializable && config.Isolation == sql.LevelSerializable {
		config.Isolation = sql.LevelReadCommitted
	}
	question := probe.Question{
		Pool:   transaction.Pool{DB: config.DB, Dialect: &config.Dialect, Gate: transaction.GateOf(config.DB)},
		Server: dbcall.ServerOf(ctx, config.Dialect, config.Names), Dialect: config.Dialect, Names: config.Names, ASCII: config.ASCII, Unverified: config.Unverified,
	}
	facts := probe.Given(config.Dialect, config.Layout)
	if config.Layout == 0 {
		var err error
		if facts, err = question.Ask(ctx); err != nil {
			return nil, err
		}
		if facts.MariaDB && facts.Cluster == nil { // it may be a node of Galera: see below
			config.MultiStatements = false
		}
		if config.Isolation, err = levelIn(facts.Cluster, config); err != nil {
			return nil, err
		}
	}
	if facts.Dialect.Statements(facts.Layout, config.Names).Isolation == "" {
		config.Acquirers = nil
	}
	if config.Layout == 0 {
		question.Dialect, question.Pool.Dialect = facts.Dialect, &facts.Anywhere
		if err := question.CheckConnections(ctx, config.Acquirers, config.MultiStatements); err != nil {
			return nil, err
		}
	}
	t, err := newTable(config, facts, question.Server)
	if err != nil {
		return nil, &dbcall.Error{Kind: dbcall.Failed, Err: err}
	}
	t.Renewals.most = maxRenewalsOf(ctx)
	t.Poller = poll.New(poll.Reads{One: t.Reads.Read, Limited: t.Reads.readPolled, Many: t.Reads.pollMany}, poll.WatcherOf(ctx))
	if err := t.openBell(ctx, config, facts.Plain); err != nil {
		return nil, err
	}
	return t, nil
}

// levelIn returns the isolation of what acquires on a server of a cluster, of which nothing is known if it is nil.
func levelIn(cluster *probe.Cluster, config Config) (sql.IsolationLevel, error) {
	switch {
	case cluster == nil || !cluster.RefusesSerializable() || config.Isolation != sql.LevelSerializable:
		return config.Isolation, nil
	case !config.Autocommit:
		return 0, &dbcall.Error{Kind: dbcall.WrongIsolation, Err: errSerializable}
	default:
		return sql.LevelReadCommitted, nil // of joint claims, for which no option asks
	}
}

var errSerializable = errors.New("a replication group that several members write to (group_replication_enforce_update_everywhere_checks) " +
	"refuses SERIALIZABLE with error 3098: set RepositoryOptions.Isolation to ReadCommitted")

// newTable makes the table of what is known.
func newTable(config Config, facts probe.Facts, server dbcall.Server) (*Table, error) {
	d := &database{
		pool: transaction.Pool{DB: config.DB, Dialect: &facts.Anywhere, Gate: transaction.GateOf(config.DB)}, server: server, dialect: facts.Dialect,
		region: config.Region, file: facts.File,
	}
	if facts.Cluster != nil {
		d.home = *facts.Cluster
	}
	t := &Table{database: d, tableNames: config.Names, layout: facts.Layout}
	if err := t.IDs.Seed(config.ClientID); err != nil {
		return nil, err
	}
	sessions := newAcquirers(d.pool, config.Acquirers, config.OnFallback)
	var in stmt.Levels
	// Of 5 400 acquisitions that were sent to Galera as messages three were of a lock that another caller had: it may
	// abort a transaction in the middle of one, and say nothing of it.
	if config.MultiStatements && !d.home.Galera {
		in.Joint, in.Look = stmt.MessageLevel(config.Isolation), facts.Plain && !facts.MariaDB
	}
	if !config.Autocommit {
		in.Acquire = in.Joint
	}
	var err error
	verify := sessions != nil || config.Autocommit && d.dialect.ReturnsHolder
	if d.statements, err = stmt.CompileAll(d.dialect, facts.Anywhere, t.layout, t.tableNames, d.region, in, verify); err != nil {
		return nil, err
	}
	t.Names, err = names.New(names.Settings{
		Pool: d.pool, Server: server, Texts: d.dialect.Statements(t.layout, t.tableNames), Dialect: d.dialect, Region: d.region, Client: t.IDs.Client(),
	})
	if err != nil {
		return nil, err
	}
	t.Turns = turns.New(turns.Settings{
		DB: cmp.Or(config.Turns, config.DB), Shared: config.Turns == nil, Texts: d.dialect.Turns(t.tableNames), Server: server, Topic: t.Topic, OnFallback: config.OnFallback,
		Ask: func(ctx context.Context, text string) (int, error) {
			return d.count(ctx, stmt.Statement{Text: text}, stmt.Values{})
		},
		Nodes:      facts.Vitess || d.home.Galera || d.home.RefusesSerializable(), // Vitess: GET_LOCK is granted by the tablet that is the primary
		Statements: d.home.ReplicatesStatements(),
	})
	t.makeVerbs()
	t.Acquisitions.sender = t.newSender(config, facts, sessions)
	t.Acquisitions.refusalsLockRows = facts.MariaDB && in.Acquire == "" && config.Acquirers == nil && (!config.Autocommit || !d.dialect.ReturnsHolder)
	if facts.Cluster != nil { // otherwise the first guard asks
		t.Guards.certification.know(d.home)
	}
	t.makeBatched(!config.DisableBatching)
	return t, nil
}

// makeVerbs makes the verbs, but for what is sent for one row or for many.
func (t *Table) makeVerbs() {
	d, parked := t.database, new(parked)
	t.Reads = &reads{database: d, polled: dbcall.NewLimiter(maxAlone)}
	t.Releases = &releases{database: d, ids: &t.IDs, parked: parked}
	t.Leftovers = &leftovers{database: d, releases: t.Releases}
	t.Acquisitions = &acquisitions{database: d, parked: parked, leftovers: t.Leftovers, reads: t.Reads, turns: t.Turns}
	t.Renewals = &renewals{database: d, most: MaxRenewals}
	t.Guards = &guards{database: d, reads: t.Reads}
	t.Pins = &pins{database: d}
	t.Deletions = &deletions{database: d, ids: &t.IDs}
}

// newSender returns what sends acquisitions.
func (t *Table) newSender(config Config, facts probe.Facts, sessions *acquirers) *sender {
	d := t.database
	a := &sender{
		database: d, acquirers: sessions, level: config.Isolation, collation: facts.Collation, inFlight: &t.Leftovers.inFlight,
		// Without round trips, one transaction for two statements is cheaper than one for each.
		transaction: !config.Autocommit || d.dialect.Embedded && d.statements.Draw.Text != "",
		// Oracle's MySQL has a statement wait for a pinned row as long as the session says, 50 s by default. MariaDB's
		// statements limit that. What an unknown server does is not known either.
		readBeforeAcquire: !d.dialect.Returning && !d.dialect.ReturnsHolder && !facts.MariaDB && d.statements.Plain.LookMessage.Text == "",
	}
	a.tokens.seed(config.Names.Fence)
	return a
}

// makeBatched makes what is sent for one row or for many.
func (t *Table) makeBatched(batching bool) {
	timeout := t.BatchTimeout()
	acquires := batched[Result]{
		one: t.Acquisitions.sender.acquireOne, many: t.Acquisitions.sender.acquireMany, server: t.server, policy: acquiring, onLeave: t.Leftovers.leaveAcquisition,
		timeout: timeout,
	}
	releases := batched[bool]{
		one: t.Releases.releaseOne, many: t.Releases.releaseMany, server: t.server, policy: releasing, onLeave: t.Leftovers.leaveRelease,
		timeout: timeout,
	}
	a, r := t.Acquisitions, t.Releases
	a.plain, a.unparking, r.deletes, r.parks = acquires, acquires, releases, releases
	a.plain.blocked, a.unparking.blocked = new(expiring.Map[string, struct{}]), new(expiring.Map[string, struct{}])
	r.parks.one, r.parks.many = r.parkOne, r.parkMany
	if batching {
		a.plain.makeBatcher(&t.keepsValues)
		a.unparking.makeBatcher(&t.keepsValues)
		r.deletes.makeBatcher(&t.keepsValues)
		r.parks.makeBatcher(&t.keepsValues)
		t.Reads.first = dbcall.NewLimiter(maxAlone)
	}
}

var errGone = errors.New("the file of the database was removed or replaced while it was open, and other processes do not see what is written to it: create another repository, over a new pool")
