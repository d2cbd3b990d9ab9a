package probe

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/stmt"
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

// ReplicatesStatements reports whether replicas run the statements of this server themselves.
func (c Cluster) ReplicatesStatements() bool { return c.Log == "ON" && c.Format == "STATEMENT" }

// IsKnown reports whether the server was known to be a working member of the cluster.
func (c Cluster) IsKnown() bool { return c.Galera || c.Member == "ONLINE" }

// LeftBy returns why a server that says now is no member of c, a cluster that is known, or nil.
func (c Cluster) LeftBy(now Cluster) error {
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
		return fmt.Errorf("%w: wsrep_cluster_address is %s, and wsrep_on is OFF, so nothing that is written here reaches another node", ErrNotAMember, c.Address)
	case c.Galera && c.Component != "" && c.Component != "Primary":
		return fmt.Errorf("%w: the Galera node is cut off from its cluster: wsrep_cluster_status is %s", ErrNotAMember, c.Component)
	case c.Galera && c.Ready != "" && c.Ready != "ON":
		return fmt.Errorf("%w: the Galera node is not ready: wsrep_ready is %s", ErrNotAMember, c.Ready)
	case c.Group != "" && c.Member != "" && c.Member != "ONLINE":
		return fmt.Errorf("%w: it is configured for the replication group %s, and its MEMBER_STATE is %s, not ONLINE", ErrNotAMember, c.Group, c.Member)
	default:
		return nil
	}
}

var (
	// ErrNotAMember is why a server must not be used.
	ErrNotAMember = errors.New("the server is not a working member of its cluster")

	errLeftGroup = errors.New("the server was ONLINE in a replication group when the repository was created, and is in none now: create another one")

	errLeftGalera = errors.New("the server was a node of Galera when the repository was created, and is none now: start it with wsrep_on=ON, or create another repository")

	errOtherCluster = errors.New("the server is in another Galera cluster than when the repository was created, as after a bootstrap without grastate.dat: " +
		"have it join the nodes that hold the locks or, if there are none, create another repository")

	errUncommitted = errors.New("the session has autocommit=0, so releases and renewals would not be committed: " +
		"set autocommit=1 in the DSN, or for the server")

	errSession = errors.New("statements about several rows would leave some out or fail, or COMMIT would do more than that: " +
		"set sql_select_limit=9223372036854775807, sql_safe_updates=0, completion_type=0 and, on TiDB, tidb_txn_mode='pessimistic' in the DSN, or for the server; the session has")
)

// ReadCluster asks a server of the dialect about its cluster. A user with few rights learns less.
// After an error nothing is known.
func ReadCluster(ctx context.Context, db stmt.Executor, d sqltext.Dialect) (Cluster, error) {
	texts := d.Statements(dialect.Spring7, sqltext.Names{})
	if texts.Cluster == "" {
		return Cluster{}, nil
	}
	found, err := AskCluster(ctx, db, texts.Cluster)
	if err != nil {
		found, err = AskCluster(ctx, db, texts.ClusterVariables)
	}
	return found, err
}

// AskCluster asks by one of the texts of [sqltext.Statements].
func AskCluster(ctx context.Context, db stmt.Executor, text string) (found Cluster, err error) {
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
