package locktable

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/dialect"
)

// A Cluster is what a server says of the cluster of several nodes that it belongs to: Galera, or
// MySQL's Group Replication. The zero value says that it belongs to none, or that it cannot be
// asked. What cannot be read is "" or false.
type Cluster struct {
	Galera bool // wsrep_on
	// Ready is wsrep_ready: ON or OFF. Component is wsrep_cluster_status: Primary, or another
	// word on a node without a quorum.
	Ready, Component string
	// UUID is wsrep_cluster_state_uuid, which a cluster keeps until it is bootstrapped without its past.
	UUID string
	// Size is wsrep_cluster_size: how many nodes the component has. Address is wsrep_cluster_address,
	// which names the others. Both are also known where wsrep_on is OFF.
	Size, Address string
	// Group is the name of the group that the server is configured for.
	Group string
	// Member is its MEMBER_STATE, as in ONLINE. Not every user may read it.
	Member string
	// UpdatesEverywhere reports whether members check for what several writers do not allow:
	// SERIALIZABLE transactions. A group with SinglePrimary does so for a moment while its
	// primary changes.
	UpdatesEverywhere, SinglePrimary bool
	// Consistency is the session's group_replication_consistency.
	Consistency string
	// Uncommitted reports whether the session does not commit statements by itself: autocommit=0.
	Uncommitted bool
	// Log and Format are log_bin and binlog_format.
	Log, Format string
	// Session is what else the session has that statements cannot work with, as in sql_select_limit=1000.
	Session string
}

// Certifies reports whether the cluster compares the rows that transactions have changed when
// they commit. On another node a lock does not count there, only a change does.
func (c Cluster) Certifies() bool { return c.Galera || c.Group != "" }

// RefusesSerializable reports whether the server refuses writes in SERIALIZABLE transactions.
func (c Cluster) RefusesSerializable() bool {
	return c.Group != "" && c.UpdatesEverywhere && !c.SinglePrimary
}

// ReadsLate reports whether a member of a group may miss, in a read, what another one has committed.
func (c Cluster) ReadsLate() bool {
	switch c.Consistency {
	case "BEFORE", "BEFORE_AND_AFTER":
		return false
	case "BEFORE_ON_PRIMARY_FAILOVER":
		return c.Group != "" && !c.SinglePrimary
	default: // AFTER helps if all that write have set it
		return c.Group != ""
	}
}

// replicatesStatements reports whether replicas run the statements of this server themselves.
func (c Cluster) replicatesStatements() bool { return c.Log == "ON" && c.Format == "STATEMENT" }

// isKnown reports whether the server was known to be a working member of the cluster.
func (c Cluster) isKnown() bool { return c.Galera || c.Member == "ONLINE" }

// leftBy returns why a server that says now is no member of c, a cluster that is known, or nil.
func (c Cluster) leftBy(now Cluster) error {
	left := c.Galera && (!now.Galera || now.UUID != c.UUID) || !c.Galera && now.Member != "ONLINE"
	switch problem := now.Problem(); {
	case !left:
	case problem != nil:
		return problem
	case c.Galera && !now.Galera:
		return errLeftGalera
	case c.Galera:
		return fmt.Errorf("%w: its wsrep_cluster_state_uuid is %s, and was %s", errOtherCluster, now.UUID, c.UUID)
	default:
		return errLeftGroup
	}
	return nil
}

// Problem returns why the server must not be used: what it writes is not, or may not be, that of
// its cluster. It returns nil if nothing speaks against it.
func (c Cluster) Problem() error {
	switch {
	case !c.Galera && strings.HasPrefix(c.Address, "gcomm://"):
		return fmt.Errorf("%w: wsrep_cluster_address is %s, and wsrep_on is OFF, so nothing that is written here reaches another node", errNotAMember, c.Address)
	case c.Galera && c.Component != "" && c.Component != "Primary":
		return fmt.Errorf("%w: the Galera node is cut off from its cluster: wsrep_cluster_status is %s", errNotAMember, c.Component)
	case c.Galera && c.Ready != "" && c.Ready != "ON":
		return fmt.Errorf("%w: the Galera node is not ready: wsrep_ready is %s", errNotAMember, c.Ready)
	case c.Group != "" && c.Member != "" && c.Member != "ONLINE":
		return fmt.Errorf("%w: it is configured for the replication group %s, and its MEMBER_STATE is %s, not ONLINE", errNotAMember, c.Group, c.Member)
	default:
		return nil
	}
}

var (
	errNotAMember = errors.New("the server is not a working member of its cluster")

	errLeftGroup = errors.New("the server was ONLINE in a replication group when the repository was created, and is in none now: create another one")

	errLeftGalera = errors.New("the server was a node of Galera when the repository was created, and is none now: start it with wsrep_on=ON, or create another repository")

	errOtherCluster = errors.New("the server is in another Galera cluster than when the repository was created, as after a bootstrap without grastate.dat: " +
		"have it join the nodes that hold the locks or, if there are none, create another repository")

	errUncommitted = errors.New("the session has autocommit=0, so releases and renewals would not be committed: " +
		"set autocommit=1 in the DSN, or for the server")

	errSession = errors.New("statements about several rows would leave some out or fail, or COMMIT would do more than that: " +
		"set sql_select_limit=9223372036854775807, sql_safe_updates=0, completion_type=0 and, on TiDB, tidb_txn_mode='pessimistic' in the DSN, or for the server; the session has")

	errSerializable = errors.New("a replication group that several members write to (group_replication_enforce_update_everywhere_checks) " +
		"refuses SERIALIZABLE with error 3098: set RepositoryOptions.Isolation to ReadCommitted")
)

// ReadCluster asks a server of the dialect about its cluster. A user with few rights learns less.
// After an error nothing is known.
func ReadCluster(ctx context.Context, db executor, d dialect.Dialect) (Cluster, error) {
	texts := d.Statements(dialect.Spring7, dialect.Names{})
	if texts.Cluster == "" {
		return Cluster{}, nil
	}
	found, err := readCluster(ctx, db, texts.Cluster)
	if err != nil {
		found, err = readCluster(ctx, db, texts.ClusterVariables)
	}
	return found, err
}

func readCluster(ctx context.Context, db executor, text string) (found Cluster, err error) {
	rows, err := db.QueryContext(ctx, text)
	if err != nil {
		return Cluster{}, err
	}
	defer func() { _ = rows.Close() }() // rows.Err reports what is wrong
	for rows.Next() {
		var name, value sql.NullString
		if err := rows.Scan(&name, &value); err != nil {
			return Cluster{}, err
		}
		found.note(strings.ToLower(name.String), value.String)
	}
	return found, rows.Err()
}

func (c *Cluster) note(name, value string) {
	switch name {
	case "wsrep_on":
		c.Galera = value == "ON"
	case "wsrep_ready":
		c.Ready = value
	case "wsrep_cluster_status":
		c.Component = value
	case "wsrep_cluster_state_uuid":
		c.UUID = value
	case "wsrep_cluster_size":
		c.Size = value
	case "wsrep_cluster_address":
		c.Address = value
	case "group_replication_consistency":
		c.Consistency = value
	case "log_bin":
		c.Log = value
	case "binlog_format":
		c.Format = value
	case "autocommit":
		c.Uncommitted = value == "OFF"
	case "session":
		c.Session += value
	case "group_replication_group_name":
		c.Group = value
	case "member_state":
		c.Member = value
	case "group_replication_single_primary_mode":
		c.SinglePrimary = value == "ON"
	case "group_replication_enforce_update_everywhere_checks":
		c.UpdatesEverywhere = value == "ON"
	}
}

// clusterEvery is how often a guard asks again whether its server certifies. A server may be
// restarted as a node of a cluster while the table is in use.
const clusterEvery = time.Minute

// certification remembers whether the server certifies transactions. Once it does, that stays: to
// write where it is not needed costs little.
type certification struct {
	found atomic.Bool
	asked atomic.Pointer[time.Time] // nil before the first time
}

// know notes what a server has said just now.
func (k *certification) know(c Cluster) {
	if c.Certifies() {
		k.found.Store(true)
	}
	now := time.Now()
	k.asked.Store(&now)
}

// isDue reports whether the server must be asked, and by this caller: others that come before the
// answer do not ask again, unless it has never been asked.
func (k *certification) isDue() bool {
	asked := k.asked.Load()
	if asked == nil {
		return true
	}
	now := time.Now()
	return now.Sub(*asked) >= clusterEvery && k.asked.CompareAndSwap(asked, &now)
}

// Where several servers write, one of them may not have applied yet what another one has committed.
// Certification makes up for that when a row is written. It does not when a row is read, or when a
// statement finds no row to change: such an answer counts only from a server that has caught up.

// readsLate reports whether the answer to a plain read may be older than what was committed.
func (t *Table) readsLate() bool { return t.statements.peekCurrent.text != "" }

// peekCurrent is peekMany for reads that decide: it misses nothing that was committed before.
func (t *Table) peekCurrent(ctx context.Context, v values) (rows map[string]Row, err error) {
	if !t.readsLate() {
		return t.peekMany(ctx, v)
	}
	err = t.inParts(v.len(), func(from, to int) error {
		try := t.pool.TryWhole()
		for try.Next(ctx) {
			var some map[string]Row
			some, try.Err = t.selectCurrent(ctx, try.Conn, v.part(from, to))
			rows = merged(rows, some)
		}
		return try.Err
	})
	return rows, err
}

// explainNoMember returns why the server of a connection is no member of the cluster, so that what it
// answers does not count.
func (t *Table) explainNoMember(ctx context.Context, conn executor) error {
	found, err := readCluster(ctx, conn, t.statements.cluster)
	if err != nil {
		return err
	}
	return cmp.Or(t.home.leftBy(found), errNotAMember) // or it has come back meanwhile
}

// selectCurrent returns the rows of v's keys that there are, after the server of conn has caught up. Its error
// may have the connection closed.
func (t *Table) selectCurrent(ctx context.Context, conn executor, v values) (map[string]Row, error) {
	rows, err := t.askCurrent(ctx, conn, v)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(rows, func(row Row) bool { return row.Region == "" }) {
		return nil, t.explainNoMember(ctx, conn)
	}
	return byKey(rows), nil
}

// askCurrent leaves the session as it was. If it cannot, its error has the connection closed.
func (t *Table) askCurrent(ctx context.Context, conn executor, v values) (rows []Row, err error) {
	if t.statements.beforeCurrent != "" {
		if _, err := conn.ExecContext(ctx, t.statements.beforeCurrent); err != nil {
			return nil, err
		}
		defer func() {
			if _, failed := conn.ExecContext(ctx, t.statements.afterCurrent); failed != nil {
				err = errors.Join(err, failed)
			}
		}()
	}
	return selectRows(ctx, conn, t.statements.peekCurrent, v)
}

// selectHeld returns those of v's rows that carry their holders and have not expired.
func (t *Table) selectHeld(ctx context.Context, v values) (held map[rowID]bool, err error) {
	err = t.inParts(len(v.rows), func(from, to int) error {
		some, _, err := t.selectRowIDs(ctx, t.pool.Try(), t.statements.heldAll, v.part(from, to))
		held = merged(held, some)
		return err
	})
	return held, err
}

// heldCurrent is what statements.heldAll answers, by a server that has caught up.
func (t *Table) heldCurrent(ctx context.Context, v values) (map[rowID]bool, error) {
	if !t.readsLate() {
		return t.selectHeld(ctx, v)
	}
	rows, err := t.peekCurrent(ctx, v)
	held := make(map[rowID]bool, len(rows))
	for _, c := range v.rows {
		if rows[c.LockKey].isHeldBy(c) {
			held[c.id()] = true
		}
	}
	return held, err
}
