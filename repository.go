package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/clientid"
	"github.com/sqllock/sqllock/internal/engine"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/report"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/turns"
	"github.com/sqllock/sqllock/observe"
)

// DefaultRegion is the default region: Spring's.
const DefaultRegion = "DEFAULT"

// maxRegion is the width of REGION: VARCHAR(100), in characters.
const maxRegion = 100

// An Isolation says in what kind of transaction a lock is acquired. All of them keep mutual
// exclusion; they differ in round trips.
type Isolation int

const (
	// Serializable acquires in a SERIALIZABLE transaction. It is the default.
	Serializable Isolation = iota
	// ReadCommitted acquires in a READ COMMITTED transaction, as Spring does since 6.0.8.
	ReadCommitted
	// Autocommit acquires without an explicit transaction: the one statement is its own,
	// which saves the round trips of BEGIN and COMMIT. Over MySQL and over lib/pq one round trip
	// checks that the application has left no transaction open on the connection, which could undo
	// it.
	Autocommit
)

// String returns the name of the isolation: "serializable", "read committed" or "autocommit".
func (i Isolation) String() string {
	switch i {
	case Serializable:
		return "serializable"
	case ReadCommitted:
		return "read committed"
	case Autocommit:
		return "autocommit"
	default:
		return fmt.Sprintf("Isolation(%d)", int(i))
	}
}

func (i Isolation) level() sql.IsolationLevel {
	if i == ReadCommitted {
		return sql.LevelReadCommitted
	}
	return sql.LevelSerializable
}

// RepositoryOptions are the settings of a [Repository]. A zero field means its default.
type RepositoryOptions struct {
	// Region separates the locks of applications that share a table: the same key in two
	// regions is two locks. 1 to 100 characters; default [DefaultRegion].
	Region string

	// Prefix stands before LOCK in the name of the table, and may begin with a schema:
	// "billing.INT_". Default [dialect.DefaultPrefix].
	Prefix string

	// ClientID is the readable part of CLIENT_ID, up to 24 letters, digits and any of
	// . _ : - characters. It must differ between processes that run at the same time:
	// ReleaseAll deletes all rows that carry it, and tools judge the leases of all its processes by what one of
	// them has last written to the table of names. Default: the host's name, or its end if it is
	// long, the process ID, and 12 random digits, as in "web-7:4711:k5h2q7dmcx3a". The digits
	// have 60 bits, so processes differ in them alone, also if host and process ID are the
	// same. The table of names has the whole name of the host: see [RegistryOptions].Application.
	ClientID string

	// Isolation is the kind of transaction that acquires. Default [Serializable].
	Isolation Isolation

	// Acquirers, if set, is a pool on the same database whose sessions are SERIALIZABLE by
	// default. An acquisition is then a single statement there, and needs no round trips for
	// BEGIN and COMMIT. The caller still has to close it. It is for the isolation
	// Serializable alone; the packages with an Open set it.
	//   - On PostgreSQL it is a second pool, with default_transaction_isolation=serializable in
	//     its DSN. Two connections are enough.
	//   - On MariaDB it may be the repository's own pool, with tx_isolation='SERIALIZABLE' in its
	//     DSN. It has an effect if the source of fencing tokens is a sequence, as `sqllock migrate
	//     up` creates it. The application should have another pool: its transactions on this one are
	//     SERIALIZABLE unless they say otherwise, and then each SELECT locks what it reads.
	//   - On Oracle's MySQL it is not used. On SQLite it is an error.
	//
	// Each statement returns the isolation in which it ran. If that was another one, because the
	// session was reset or a pooler lost the setting, the row is acquired once more in an
	// explicit transaction, and so are all others for a minute. Observer.Fallback is called.
	Acquirers *sql.DB

	// Turns, if set, is a pool on the same database for the sessions in which callers of fair locks
	// wait: see [RegistryOptions.Fair]. It stays the caller's. Its connections must let a
	// statement wait for a minute at least (readTimeout of go-sql-driver). By default they come from the repository's
	// pool. The packages with an Open set it.
	Turns *sql.DB

	// Observers receive what happens in the repository, and in all registries over it. Nil
	// ones are left out.
	Observers []*observe.Observer

	// MultiStatements says that the pool takes several statements with arguments in one
	// message: the DSN of go-sql-driver has multiStatements=true and interpolateParams=true.
	// An acquisition in an explicit transaction is then one message, and one round trip. Set
	// them for a pool of sqllock's own alone: if an application builds statements from
	// users' input, multiStatements makes SQL injection worse. It is for MySQL and MariaDB;
	// mysqllock.Open sets it. Galera gets none, unless Layout is set: it may leave out a part of one.
	MultiStatements bool

	// Keys maps keys to LOCK_KEY. Default [SpringKeys].
	Keys KeyMapper

	// Layout is the layout of the table. By default NewRepository asks the database, and
	// thereby checks that the dialect is right and that the table exists. If Layout is set,
	// NewRepository sends nothing, as with Spring's checkDatabaseOnStart=false. On MySQL
	// each attempt to acquire then reads the row first, which Oracle's MySQL needs and
	// MariaDB does not. In a cluster of Galera or a replication group locks are then also
	// acquired where the server is no member, and read-write locks may have a reader and a
	// writer at once if several servers write, and fair locks have no order. No server is refused: see
	// Unverified. On MariaDB acquisitions then fail with
	// [ErrSchema] if the source of fencing tokens is a sequence, unless the dialect is
	// dialect.MySQL().WithSequence(). mysqllock.Open checks this, once: a process that was
	// started before the migration must be restarted after it.
	Layout dialect.Layout

	// TTL is the time-to-live of all rows in the four-column table of Spring Integration 4
	// to 6 ([dialect.Spring6]). Its rows do not record when they expire, so Peek, List,
	// IsAcquired and DeleteExpired judge them by TTL. It is the default of
	// RegistryOptions.TTL over such a table, and the only value that is accepted. All
	// programs that use the table need the same one: a reader with a shorter one takes
	// rows of live holders. It has no meaning for other tables. At least [MinTTL]; default [DefaultTTL].
	TTL time.Duration

	// DisableBatching makes every acquisition and every release a statement of its own.
	// By default, calls that arrive while a statement is in flight are batched into the
	// next one: a few connections then do what would take hundreds. Batching adds no
	// delay, and each caller gets its own result. The polls of waiters are batched all the same.
	DisableBatching bool

	// DisableFencing makes acquisitions draw no fencing tokens: [Lease.Token] is 0. It is
	// for a table that Spring created and that must stay as it is. Tokens come from an
	// object beside the table, which `sqllock migrate up` creates.
	DisableFencing bool

	// Notify makes releases notify the processes that wait for the lock, which then need
	// not wait for their next poll: see [Waker]. It is for PostgreSQL alone, where the
	// DELETE of a row notifies without a further round trip. Set it in all processes that
	// release, or give the table the triggers of docs/waiting.md instead.
	Notify bool

	// Unverified, if true, permits a server that sqllock does not support, such as CockroachDB. It speaks the
	// protocol of PostgreSQL or of MySQL, but its row locks or its sequences are others, or no test has run on it:
	// several callers may hold a lock at once, and fencing tokens may not rise. By default NewRepository
	// returns [ErrInvalid] there, with the reason. The server is judged by what it reports of itself.
	Unverified bool
}

// complete checks the options and fills in the defaults.
func (o *RepositoryOptions) complete(d sqltext.Dialect) error {
	if o.Region == "" {
		o.Region = DefaultRegion
	}
	if o.Keys == nil {
		o.Keys = SpringKeys
	}
	if o.TTL == 0 {
		o.TTL = DefaultTTL
	}
	switch {
	case o.Isolation < Serializable || o.Isolation > Autocommit:
		return invalid("unknown isolation %v", o.Isolation)
	case o.Layout < 0 || o.Layout > dialect.Spring6:
		return invalid("unknown layout %d", o.Layout)
	case o.ClientID != "" && !clientForm.MatchString(o.ClientID):
		return invalid("client id %q: it has 1 to %d characters out of letters, digits and . _ : -", o.ClientID, clientid.Max)
	case o.Acquirers != nil && o.Isolation != Serializable:
		return invalid("Acquirers: they are serializable, and the isolation is %v", o.Isolation)
	case o.Acquirers != nil && d.Embedded:
		return invalid("Acquirers: they are for PostgreSQL and MariaDB, not for %s", d.Name)
	case o.MultiStatements && d.Name != sqltext.MySQL().Name:
		return invalid("MultiStatements: it is for MySQL and MariaDB, not for %s", d.Name)
	case o.Notify && !d.Notifies:
		return invalid("Notify: %s cannot notify", d.Name)
	}
	if err := engine.CheckTTL(o.TTL, d.LeastTTL); err != nil {
		return err
	}
	return checkText("region", o.Region, maxRegion)
}

var clientForm = regexp.MustCompile(fmt.Sprintf(`^[A-Za-z0-9._:-]{1,%d}$`, clientid.Max))

// names returns the names of the tables that the options ask for.
func (o *RepositoryOptions) names() (sqltext.Names, error) {
	names, err := sqltext.NamesFor(o.Prefix)
	if err != nil {
		return names, invalid("%w", err)
	}
	if o.DisableFencing {
		names.Fence = ""
	}
	if o.Notify {
		names.Channel = dialect.Channel
	}
	return names, nil
}

// isASCII reports whether the region and all LOCK_KEYs are ASCII, as those of [SpringKeys] are: then they
// are the same in every character set. A mapper that keeps what is not ASCII keeps the probe.
func (o *RepositoryOptions) isASCII() bool {
	lockKey, err := o.Keys("ü €")
	return err == nil && !strings.ContainsFunc(lockKey+o.Region, func(c rune) bool { return c > unicode.MaxASCII })
}

// onFallback returns what tells the observers why a statement was sent in another way.
func (o *RepositoryOptions) onFallback() func(reason error) {
	told := slices.DeleteFunc(slices.Clone(o.Observers), func(one *observe.Observer) bool { return one == nil || one.Fallback == nil })
	return func(reason error) {
		report.ForEach(told, func(one *observe.Observer) {
			one.Fallback(context.Background(), observe.Fallback{
				Reason: reason, OutOfTurn: errors.Is(reason, turns.ErrOutOfTurn), Unwoken: errors.Is(reason, locktable.ErrUnwoken),
			})
		})
	}
}

// A Repository is the lock table: it acquires, renews, deletes and lists rows. It does not
// handle waiting, local callers or leases. The [Registry] does, and most users need only
// that.
//
// It mirrors Spring's DefaultLockRepository, except that ownership is per acquisition: each
// call of NewHolder returns another CLIENT_ID, so that a late statement of one acquisition can
// never touch the row of the next.
//
// The limits of its statements:
//   - A statement that lost a race (a serialization failure, a deadlock) is sent again, with
//     pauses, until ctx ends; one that acquires, ten times, after which it has not acquired.
//   - A statement whose connection broke before the answer came is sent again, on another one.
//   - A statement about a row that a transaction has pinned (see [Lease.Guard]) returns
//     [ErrPinned] after about a second, a deletion after three.
//   - A statement about a single row times out after 5 s if it is batched with others, else
//     after its time-to-live or 10 s, whichever is more: [ErrDatabase]. A read is sent again,
//     on another connection, each 5 s until then.
//   - Every method returns a moment after ctx has ended, even if the driver ignores its
//     context: then with [ErrDatabase].
//
// Durations are kept to the microsecond, on SQLite to the millisecond. All methods are safe for
// concurrent use.
type Repository struct {
	table  *locktable.Table
	region string
	keys   KeyMapper
	ttl    time.Duration // by which rows of the four-column table are judged

	observers []*observe.Observer
}

// NewRepository returns a repository over db, a *sql.DB or a *sqlx.DB, which it never closes or reconfigures.
// Libraries over database/sql have such a pool: db.DB of bun, db.DB() of GORM,
// stdlib.OpenDBFromPool(pool) for a pgxpool. d is the dialect of the server, whatever the
// driver. opts may be nil.
//
// Unless opts.Layout is set, NewRepository asks the server, over one connection, what it is and what the tables are like. While the
// database is busy, as SQLite is while another process writes, it tries again until ctx ends. It returns
//   - [ErrInvalid] for bad options; if d is not the dialect of the server, or sqllock does not support the server (see
//     [RepositoryOptions].Unverified); if the server refuses the isolation, as a replication group that several members write to
//     takes no [Serializable]; if the session does not commit its statements (autocommit=0), or if it does not send text as UTF-8 where
//     the keys or the region need it; if Acquirers are connected to another table, or MultiStatements is set and the pool does not take
//     them,
//   - [ErrSchema] if the table is missing, or is not what locks need: it is a view, or not transactional; it has another unique key
//     than LOCK_KEY and REGION, times with a time zone or without digits of a second, a LOCK_KEY that is not utf8mb4 for keys that are
//     not ASCII; or if fencing tokens might not rise. The text names the cure; docs/schema.md has the list,
//   - [ErrDatabase] for any other error, also if ctx ends first, a statement has no answer within 10 s, or the server is not a working
//     member of its Galera cluster or replication group.
//
// Bad options return [ErrInvalid] before anything is sent.
func NewRepository[DB *sql.DB | *sqlx.DB](ctx context.Context, db DB, d dialect.Dialect, opts *RepositoryOptions) (*Repository, error) {
	pool, _ := any(db).(*sql.DB)
	if one, ok := any(db).(*sqlx.DB); ok && one != nil {
		pool = one.DB
	}
	var o RepositoryOptions
	if opts != nil {
		o = *opts
	}
	texts := sqltext.Of(d)
	if pool == nil || texts.Name == "" {
		return nil, invalid("a repository needs a database and a dialect")
	}
	if err := o.complete(texts); err != nil {
		return nil, err
	}
	names, err := o.names()
	if err != nil {
		return nil, err
	}
	table, err := locktable.Open(ctx, locktable.Config{
		DB: pool, Dialect: texts, Names: names, Region: o.Region, ClientID: o.ClientID, Layout: o.Layout, ASCII: o.isASCII(), Unverified: o.Unverified,
		Isolation: o.Isolation.level(), Autocommit: o.Isolation == Autocommit,
		Acquirers: o.Acquirers, Turns: o.Turns, MultiStatements: o.MultiStatements,
		OnFallback:      o.onFallback(), //nolint:contextcheck // a statement for many callers has the context of none
		DisableBatching: o.DisableBatching,
	})
	if err != nil {
		return nil, failure.Of(err, "")
	}
	return &Repository{table: table, region: o.Region, keys: o.Keys, ttl: o.TTL, observers: slices.Clone(o.Observers)}, nil
}

// ClientID returns what the CLIENT_IDs of this repository begin with.
func (r *Repository) ClientID() string { return r.table.ClientID() }

// Region returns the region of the repository.
func (r *Repository) Region() string { return r.region }

// Layout returns the layout of the table.
func (r *Repository) Layout() dialect.Layout { return r.table.Layout() }

// LockKey returns the LOCK_KEY of a key, or [ErrInvalid]. It is Spring's pathFor.
func (r *Repository) LockKey(key string) (string, error) {
	lockKey, err := r.keys(key)
	if err != nil {
		return "", err
	}
	return lockKey, checkText("mapped key", lockKey, maxLockKey)
}

// NewHolder returns a CLIENT_ID for one acquisition: the client id, a dash and a number that no
// other acquisition of this repository has.
func (r *Repository) NewHolder() string { return r.table.IDs.Next() }

// An Acquisition is the answer to an attempt to acquire.
type Acquisition struct {
	// Acquired reports whether the row carries the caller's holder now.
	Acquired bool
	// Token is the fencing token of the acquisition: see [Lease.Token].
	Token int64
	// Row is the row of another holder if Acquired is false. It is zero if that row was
	// deleted in the meantime.
	Row Row
}

// Acquire inserts the row of key with the holder for ttl, or takes it over if it has expired or
// carries this very holder: a statement that is sent again after a lost race recognises its own
// row. It does not wait for another holder.
//
// An attempt that keeps losing races, or meets a row that a transaction has pinned, counts as
// not acquired. If the outcome is unknown (the connection broke, or ctx ended, while the
// transaction was being committed), Acquire returns the error and sees to it that no row is
// left behind: it deletes the row at once or, if the database cannot be reached, before the
// next acquisition of the key. After an error the holder must not be used again, for that
// deletion may come late.
//
// The errors are [ErrDatabase], [ErrInvalid], or that of ctx.
func (r *Repository) Acquire(ctx context.Context, key, holder string, ttl time.Duration) (Acquisition, error) {
	c, err := r.claim(key, holder, ttl)
	if err != nil {
		return Acquisition{}, err
	}
	got, err := r.table.Acquisitions.Acquire(ctx, c)
	return Acquisition{got.Acquired, got.Token, rowOf(got.Row)}, failure.Of(err, key)
}

// Renew makes the row of key that carries the holder last for ttl from now, unless it lasts
// longer already: a renewal that arrives late shortens nothing. It returns false if there is no
// such row or it has expired: an expired lease is lost, even while no contender has taken it.
// (Spring revives it.)
//
// The errors are [ErrDatabase], [ErrPinned], [ErrInvalid], or that of ctx.
func (r *Repository) Renew(ctx context.Context, key, holder string, ttl time.Duration) (bool, error) {
	c, err := r.claim(key, holder, ttl)
	if err != nil {
		return false, err
	}
	renewed, err := r.table.Renewals.Renew(ctx, c, locktable.PinnedTimeout, nil)
	return renewed, failure.Of(err, key)
}

// Delete deletes the row of key that carries the holder, expired or not. It returns false if
// there is none. If a connection broke before the answer came, Delete sends the statement
// again, and then returns true also for a row that is not there: it may have deleted it before.
//
// The errors are [ErrDatabase], [ErrPinned], [ErrInvalid], or that of ctx.
func (r *Repository) Delete(ctx context.Context, key, holder string) (bool, error) {
	c, err := r.claim(key, holder, r.ttl)
	if err != nil {
		return false, err
	}
	deleted, err := r.table.Releases.Release(ctx, c)
	return deleted, failure.Of(err, key)
}

// IsAcquired reports whether the row of key carries the holder and has not expired.
//
// The errors are [ErrDatabase], [ErrInvalid], or that of ctx.
func (r *Repository) IsAcquired(ctx context.Context, key, holder string) (bool, error) {
	c, err := r.claim(key, holder, r.ttl)
	if err != nil {
		return false, err
	}
	held, err := r.table.Reads.IsHeld(ctx, c)
	return held, failure.Of(err, key)
}

// A Row is one row of the lock table.
type Row struct {
	// Region and LockKey are the primary key. LockKey is what the [KeyMapper] made of
	// the user's key.
	Region, LockKey string
	// Holder is CLIENT_ID: one acquisition of one client.
	Holder string
	// Age is the time since CREATED_DATE. It counts from the acquisition, in the
	// four-column layout from the last renewal, and in rows that Spring 7 took over from
	// another holder from the row's first insertion.
	Age time.Duration
	// Left is the time until the lease ends, by the database's clock. It is negative in
	// an expired row. In that of a busy key that is free the end lies a day before its release.
	Left time.Duration
	// Key is the user's key as it was written, or "" if it is not known: see
	// [RegistryOptions].Application. That of a long key is cut, and ends in "...". The rows of a semaphore and of a
	// read-write lock are named "permit 2 of render", "reader 0 of render" and "permit turn of render".
	Key string
	// Process is the process that Holder belongs to, the zero value if it is not known.
	Process Process
}

// Expired reports whether any contender may take the row over.
func (row Row) Expired() bool { return row.Left < 0 }

// Kept reports whether the holder has released the lock, and has left the row: for the rest of a minimum
// hold (see [JdbcLock.WithMinHold]), or, expired, because the key is busy.
func (row Row) Kept() bool { return clientid.IsKept(row.Holder) }

// Released reports whether the row is free because its holder has released it: it was kept, and has expired. A row that has expired and
// was not kept is that of a holder that has ended without a release, or has not renewed in time.
func (row Row) Released() bool {
	return locktable.Row{Holder: row.Holder, Left: row.Left}.IsReleased()
}

// Peek reads the row of key. It writes nothing and locks nothing. ok is false if there is no
// row. Where several servers of a cluster write, it waits until the one that it asks has applied what was
// committed before.
//
// The errors are [ErrDatabase], [ErrInvalid], or that of ctx.
func (r *Repository) Peek(ctx context.Context, key string) (row Row, ok bool, err error) {
	lockKey, err := r.LockKey(key)
	if err != nil {
		return Row{}, false, err
	}
	read, ok, err := r.table.Reads.ReadNow(ctx, locktable.Claim{LockKey: lockKey, TTL: r.ttl})
	if err != nil || !ok {
		return Row{}, false, failure.Of(err, key)
	}
	return r.peeked(ctx, map[string]locktable.Row{key: read})[key], true, nil
}

// PeekAll reads the rows of keys by one statement, and returns those that there are, expired or
// not, by key as it was written. Names that are not known are read by one more, and those of keys in UUID form by a third. It
// writes nothing and locks nothing, and waits as [Repository.Peek] does. It takes 10 000 keys at most.
//
// The errors are [ErrDatabase], [ErrInvalid], or that of ctx.
func (r *Repository) PeekAll(ctx context.Context, keys ...string) (map[string]Row, error) {
	if len(keys) > locktable.MaxRenewals {
		return nil, invalid("%d keys: the limit is %d", len(keys), locktable.MaxRenewals)
	}
	if len(keys) == 0 {
		return nil, nil
	}
	lockKeys := make([]string, len(keys))
	for i, key := range keys {
		var err error
		if lockKeys[i], err = r.LockKey(key); err != nil {
			return nil, err
		}
	}
	read, err := r.table.Reads.ReadAll(ctx, lockKeys, r.ttl)
	if err != nil {
		return nil, failure.Of(err, keys[0])
	}
	rows := make(map[string]locktable.Row, len(read))
	for i, key := range keys {
		if row, ok := read[lockKeys[i]]; ok {
			rows[key] = row
		}
	}
	return r.peeked(ctx, rows), nil
}

// List reads all rows of the table, of every region, in order of region and LOCK_KEY. One more statement
// reads their names (see [RegistryOptions.Application]); without a table of names, or rights to read it, Key and
// Process of the rows are empty.
//
// The errors are [ErrDatabase], or that of ctx.
func (r *Repository) List(ctx context.Context) ([]Row, error) {
	read, err := r.table.Reads.List(ctx, r.ttl)
	return r.named(ctx, read, err)
}

// ListFirst reads at most limit rows of the table, of every region: those that are held before
// those that have expired, and of both the oldest first. It is for displays: List of a table
// with a hundred thousand rows returns them all. It reads names as List does.
//
// The errors are [ErrDatabase], [ErrInvalid] if limit is less than 1, or that of ctx.
func (r *Repository) ListFirst(ctx context.Context, limit int) ([]Row, error) {
	if limit < 1 {
		return nil, invalid("limit %d: it must be at least 1", limit)
	}
	read, err := r.table.Reads.ListFirst(ctx, limit, r.ttl)
	return r.named(ctx, read, err)
}

// Count counts the rows of the region, by state. The database counts, by one statement, which reads all rows of the
// region there. It is for metrics. The states are
//   - "held": the row has not expired and is not kept,
//   - "kept": it was left for the rest of a minimum hold, which lasts (see [Row.Kept]),
//   - "finished": it was kept, and the minimum hold is over; or it is the row of a busy key, which is free,
//   - "expired": it has expired and was not kept.
//
// The errors are [ErrDatabase], or that of ctx.
func (r *Repository) Count(ctx context.Context) (map[string]int64, error) {
	n, err := r.table.Reads.Count(ctx, r.ttl)
	if err != nil {
		return nil, failure.Of(err, "")
	}
	return map[string]int64{"held": n.Held, "kept": n.Kept, "finished": n.Finished, "expired": n.Expired}, nil
}

// DeleteRow deletes a row that List or ListFirst has returned, of any region, expired or not. It
// returns false if the row does not carry that holder any more, because the lock was released or
// acquired again in the meantime, with the same exception as [Repository.Delete].
//
// It breaks the lock: if the holder is alive, it goes on working until its next renewal
// fails, at the same time as the next holder.
//
// The errors are [ErrDatabase], [ErrPinned], [ErrInvalid] if the row has no holder, or that of ctx.
// A row whose CLIENT_ID is NULL has none; neither sqllock nor Spring makes such rows.
func (r *Repository) DeleteRow(ctx context.Context, row Row) (bool, error) {
	if row.Holder == "" {
		return false, invalid("row %q of region %q has no CLIENT_ID: it can be deleted by SQL alone", row.LockKey, row.Region)
	}
	deleted, err := r.table.Deletions.DeleteRow(ctx, row.read())
	return deleted, failure.Of(err, row.LockKey)
}

// DeleteExpired deletes the expired rows of the region and returns how many there were: those of leases that are over,
// and those of busy keys that are free (see [Row.Released]). Rows that a transaction has pinned are left for the next time.
//
// DeleteExpired also deletes names that have not been used for a day, of every region, from the table
// of names, if that is there: see [RegistryOptions].Application. It does not count them.
//
// The errors are [ErrDatabase], or that of ctx.
func (r *Repository) DeleteExpired(ctx context.Context) (int64, error) {
	deleted, err := r.table.Deletions.DeleteExpired(ctx, r.ttl)
	for more := err == nil; more; {
		more = r.table.Names.DeleteOld(ctx)
	}
	return deleted, failure.Of(err, "")
}

// ReleaseAll deletes all rows of this client in the region: Spring's close. If a transaction
// has some of them pinned for longer than a second, ReleaseAll deletes the others and returns
// [ErrPinned]; it may be called again. The repository can be used again.
//
// Other errors are [ErrDatabase], or that of ctx.
func (r *Repository) ReleaseAll(ctx context.Context) error {
	return failure.Of(r.table.Deletions.DeleteClient(ctx), "")
}

// fixedTTL is the time-to-live that all rows have in the four-column layout, or 0.
func (r *Repository) fixedTTL() time.Duration {
	if r.Layout() == dialect.Spring6 {
		return r.ttl
	}
	return 0
}

// claim maps the key and checks what a caller passed.
func (r *Repository) claim(key, holder string, ttl time.Duration) (locktable.Claim, error) {
	lockKey, err := r.LockKey(key)
	if err != nil {
		return locktable.Claim{}, err
	}
	if err := checkText("holder", holder, maxLockKey); err != nil {
		return locktable.Claim{}, err
	}
	if err := engine.CheckTTL(ttl, r.table.LeastTTL()); err != nil {
		return locktable.Claim{}, err
	}
	return locktable.Claim{LockKey: lockKey, Holder: holder, TTL: ttl}, nil
}
