package sqllock

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/stmtcache"
)

// Defaults of [RepositoryOptions]; region and prefix are Spring's.
const (
	DefaultRegion       = "DEFAULT"
	DefaultPrefix       = dialect.DefaultPrefix
	DefaultStartTimeout = 10 * time.Second
)

// maxRegion is the width of REGION: VARCHAR(100), in characters.
const maxRegion = 100

// An Isolation says in what kind of transaction a lock is acquired. All of them
// keep mutual exclusion; they differ in round trips.
type Isolation int

const (
	// Serializable acquires in a SERIALIZABLE transaction. It is the default.
	Serializable Isolation = iota
	// ReadCommitted acquires in a READ COMMITTED transaction, as Spring does
	// since 6.0.8.
	ReadCommitted
	// Statement acquires without an explicit transaction: the one statement is
	// its own, and BEGIN and COMMIT are saved.
	Statement
)

// String returns the name of the isolation.
func (i Isolation) String() string {
	switch i {
	case Serializable:
		return "serializable"
	case ReadCommitted:
		return "read committed"
	case Statement:
		return "statement"
	default:
		return fmt.Sprintf("Isolation(%d)", int(i))
	}
}

// RepositoryOptions are the settings of a [Repository]. A zero field means its
// default.
type RepositoryOptions struct {
	// Region separates the locks of applications that share a table: the same
	// key in two regions is two locks. 1 to 100 characters; default "DEFAULT".
	Region string

	// Prefix stands before LOCK in the name of the table, and may begin with a
	// schema: "billing.INT_". Default "INT_".
	Prefix string

	// ClientID is the readable part of CLIENT_ID, up to 24 letters, digits and
	// any of . _ : - characters, and must differ between processes that run at
	// the same time: Close removes all rows that carry it. Default: random.
	ClientID string

	// Isolation is the kind of transaction that acquires. Default Serializable.
	Isolation Isolation

	// Keys maps keys to LOCK_KEY. Default [SpringKeys].
	Keys KeyMapper

	// Layout is the layout of the table. By default NewRepository reads it from the
	// database, and thereby checks that the dialect is right and the table is there. If
	// it is given, NewRepository sends nothing, as with Spring's
	// checkDatabaseOnStart=false. With MySQL each attempt to acquire then reads the row
	// first, as is needed on Oracle's and not on MariaDB.
	Layout dialect.Layout

	// StartTimeout is how long NewRepository tries to read it. A database that is busy,
	// as SQLite's is while another process writes, is asked again until then. Default 10 s.
	StartTimeout time.Duration

	// WithoutGroupCommit says that every acquisition and every release is a statement
	// of its own. By default those that arrive while another is under way travel
	// together in the next one: a few connections then do what hundreds could not.
	// Nobody waits for company, and nobody's error or cancellation is another's.
	WithoutGroupCommit bool

	// Prepare says that statements are prepared once for each connection, and kept. It
	// is for lib/pq and go-sql-driver/mysql, which otherwise prepare a statement for
	// each execution, with a round trip of its own; pgx keeps its statements by itself.
	// Do not set it behind PgBouncer's transaction pooling, where the name of a
	// statement may mean another one on the server connection that comes next. With
	// PostgreSQL, closing the pool then asks the server about each statement, and waits
	// if it does not answer. Close of the repository closes them.
	Prepare bool

	// WithoutFence says that no fencing tokens are drawn: [Lease.Token] is 0.
	// It is for a table that Spring created and that must be left as it is, for
	// tokens come from an object beside it, which `sqllock migrate up` creates.
	WithoutFence bool

	// Notify says that releases tell the processes that wait for the lock, which
	// then need not wait for their next look: see [Waker]. It is for PostgreSQL
	// alone, where the DELETE of a row notifies, at no further round trip. Set it on
	// all that release, or give the table the trigger of docs/notify.md instead.
	Notify bool
}

// A Repository is the lock table: it acquires, renews, deletes and lists rows.
// It knows nothing of waiting, of local callers or of what a lease means to its
// holder; that is the [Registry]'s part, and most users need nothing else.
//
// It mirrors Spring's DefaultLockRepository, except that ownership is per
// acquisition: each call of NewHolder gives another CLIENT_ID, so that a late
// statement of one acquisition can never touch the row of the next.
//
// Statements that lost a race (a serialization failure, a deadlock) are sent
// again, with pauses, while ctx lasts. One that waits for a row that a transaction
// has pinned (see [Lease.Guard]) gives up after about a second with [ErrPinned], a
// deletion after three. All give up with [ErrDatabase] a moment after ctx has ended if
// there is no answer, also if the driver does not look at its context. One about a single
// row gives up after 5 s if it is batched with others, else after its
// time-to-live or 10 s, whichever is more. Durations are kept to the microsecond, on SQLite
// to the millisecond. All methods are safe for concurrent use.
type Repository struct {
	db         *sqlx.DB
	dialect    dialect.Dialect
	statements statements
	layout     dialect.Layout
	names      dialect.Names
	region     string
	client     *client
	isolation  Isolation
	keys       KeyMapper
	abandoned  abandoned
	orphans    orphans
	trimmer    trimmer
	looksFirst bool // before each attempt, whether the row is held
	// triesLockLong says that a refused attempt locks the row for several round trips
	triesLockLong bool
	batchers      *batchers        // nil if batching is disabled
	prepared      *stmtcache.Cache // nil unless asked for
}

// NewRepository returns a repository over db, which stays the caller's: it is
// never closed or reconfigured. opts may be nil.
//
// Unless opts.Layout is given, it asks what the server is and reads the columns of the
// tables. Then it returns
//   - an [ErrInvalid] that names both if d is not the dialect of the server,
//   - an [ErrSchema] that says what is missing in the table and how to create it,
//   - an [ErrDatabase] if there is no answer within opts.StartTimeout.
//
// Bad options give an [ErrInvalid] before anything is sent.
func NewRepository(db *sqlx.DB, d dialect.Dialect, opts *RepositoryOptions) (*Repository, error) {
	var o RepositoryOptions
	if opts != nil {
		o = *opts
	}
	if err := o.complete(); err != nil {
		return nil, err
	}
	if db == nil || d.Classify == nil {
		return nil, invalid("a repository needs a database and a dialect")
	}
	if o.Notify && !d.Notifies {
		return nil, invalid("Notify: %s cannot tell who waits", d.Name)
	}
	names, err := dialect.NamesFor(o.Prefix)
	if err != nil {
		return nil, invalid("%w", err)
	}
	client, err := newClient(o.ClientID)
	if err != nil {
		return nil, err
	}
	if o.WithoutFence {
		names.Fence = ""
	}
	if o.Notify {
		names.Channel = dialect.Channel
	}
	r := &Repository{
		db: db, dialect: d, layout: o.Layout, names: names, region: o.Region,
		client: client, isolation: o.Isolation, keys: o.Keys,
	}
	r.trimmer.begin()
	if r.layout != 0 {
		r.looksFirst = r.waitsForPinnedRows("") // the server is not asked what it is
	} else {
		if err := r.inspect(o.StartTimeout); err != nil {
			return nil, err
		}
	}
	r.triesLockLong = !d.Returning && !r.looksFirst
	if !o.WithoutGroupCommit {
		r.batchers = r.newBatchers()
	}
	if r.statements, err = compileAll(d, r.layout, names, r.region); err != nil {
		return nil, err
	}
	if o.Prepare {
		r.prepared = stmtcache.New(db, r.statements.constant()...)
	}
	return r, nil
}

// complete checks the options and fills in the defaults.
func (o *RepositoryOptions) complete() error {
	if o.Region == "" {
		o.Region = DefaultRegion
	}
	if o.Keys == nil {
		o.Keys = SpringKeys
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = DefaultStartTimeout
	}
	switch {
	case o.StartTimeout < 0:
		return invalid("StartTimeout %v is negative", o.StartTimeout)
	case o.Isolation < Serializable || o.Isolation > Statement:
		return invalid("%v is no isolation", o.Isolation)
	case o.Layout < 0 || o.Layout > dialect.Spring6:
		return invalid("%v is no layout", o.Layout)
	}
	return checkText("region", o.Region, maxRegion)
}

// ClientID returns what the CLIENT_IDs of this repository begin with.
func (r *Repository) ClientID() string { return r.client.id }

// Region returns the region of the repository.
func (r *Repository) Region() string { return r.region }

// Layout returns the layout of the table.
func (r *Repository) Layout() dialect.Layout { return r.layout }

// LockKey returns the LOCK_KEY of a key, or an [ErrInvalid]: Spring's pathFor.
func (r *Repository) LockKey(key string) (string, error) {
	lockKey, err := r.keys(key)
	if err != nil {
		return "", err
	}
	return lockKey, checkText("mapped key", lockKey, maxLockKey)
}

// NewHolder returns a CLIENT_ID for one acquisition: the client id, a dash and a
// number that no other acquisition of this repository has.
func (r *Repository) NewHolder() string { return r.client.nextHolder() }

// Delete removes the row of key that carries the holder, expired or not. It
// returns false if there is none. If a connection broke before the answer came, Delete
// sends the statement again, and then returns true also for a row that is not there: it may
// have removed it before.
func (r *Repository) Delete(ctx context.Context, key, holder string) (bool, error) {
	p, err := r.params(key, holder, MinTTL)
	if err != nil {
		return false, err
	}
	got, err := r.remove(ctx, p)
	return got.done(), err
}

func (r *Repository) remove(ctx context.Context, p params) (got removal, err error) {
	err = r.retryPinned(ctx, longestRemoval, "delete", p.name, func() error {
		one, err := r.removeTogether(ctx, p)
		got = removal{removed: one.removed, resent: got.resent || one.resent}
		return err
	})
	return got, err
}

// IsAcquired tells whether the row of key carries the holder and has not
// expired. In the four-column layout ttl decides the latter.
func (r *Repository) IsAcquired(ctx context.Context, key, holder string, ttl time.Duration) (bool, error) {
	p, err := r.params(key, holder, ttl)
	if err != nil {
		return false, err
	}
	var held bool
	err = r.retry(ctx, "look up", key, func() (err error) {
		held, err = within(ctx, ttl, func(ctx context.Context) (bool, error) { return r.isHeld(ctx, p) }, nil)
		return err
	})
	return held, err
}

// Close releases all rows of this client in the region. If a transaction has some of them
// pinned for longer than a second, it releases the others and returns an [ErrPinned]; it
// may be called again. The repository can be used again; db stays open.
func (r *Repository) Close(ctx context.Context) error {
	err := r.removeClient(ctx)
	if err != nil || r.prepared == nil {
		return err // a server that does not answer would not do so about statements either
	}
	_, err = answered(ctx, "close", "", func() (struct{}, error) { return struct{}{}, r.prepared.Close() })
	return err
}

// params maps the key and checks what a caller passed.
func (r *Repository) params(key, holder string, ttl time.Duration) (params, error) {
	lockKey, err := r.LockKey(key)
	if err != nil {
		return params{}, err
	}
	if err := checkText("holder", holder, maxLockKey); err != nil {
		return params{}, err
	}
	if err := checkTTL(ttl); err != nil {
		return params{}, err
	}
	return r.paramsOf(key, lockKey, holder, ttl), nil
}

// paramsOf returns the parameters for one row, whose values are known to be good.
func (r *Repository) paramsOf(name, lockKey, holder string, ttl time.Duration) params {
	return params{name: name, lockKey: lockKey, holder: holder, ttl: ttl, left: ttl}
}

func (r *Repository) isHeld(ctx context.Context, p params) (bool, error) {
	var n int
	err := r.on(nil).QueryRowxContext(ctx, r.statements.held.text, r.statements.held.args(p)...).Scan(&n)
	return n > 0, err
}

// on returns what runs statements in tx, or on the pool if it is nil.
func (r *Repository) on(tx *sqlx.Tx) sqlx.ExtContext {
	switch {
	case r.prepared != nil:
		return r.prepared.On(tx)
	case tx != nil:
		return tx
	default:
		return r.db
	}
}

// begin begins a transaction.
func (r *Repository) begin(ctx context.Context, opts *sql.TxOptions) (*sqlx.Tx, error) {
	if r.prepared != nil {
		return r.prepared.Begin(ctx, opts)
	}
	return r.db.BeginTxx(ctx, opts)
}
