package sqltext

import (
	"strings"

	"github.com/sqllock/sqllock/dialect"
)

// Galera and Group Replication certify a transaction when it commits: they compare the rows that
// it has changed with those that other nodes have changed meanwhile. A row that is only locked,
// or updated to what it was, is not among them.

// leastStep is the smallest number of µs that a CREATED_DATE can be moved by, so that the row
// changes however many digits of a second its column keeps: three at least.
const leastStep = "CASE WHEN MICROSECOND(CREATED_DATE) % 10 > 0 THEN 1 WHEN MICROSECOND(CREATED_DATE) % 100 > 0 THEN 10" +
	" WHEN MICROSECOND(CREATED_DATE) % 1000 > 0 THEN 100 ELSE 1000 END"

// clusterFacts is one text for MariaDB, which reads the comments with M, and MySQL, which reads
// those with its version. It selects from no other table and is no subquery, because a Galera
// node without a quorum refuses everything else. The user needs no rights for it. It asks for
// facts of the session, too: whether its statements commit, its reads wait, and what it has
// that locks cannot work with.
const clusterFacts = `SELECT CAST(VARIABLE_NAME AS CHAR), CAST(VARIABLE_VALUE AS CHAR) FROM /*M! information_schema *//*!80000 performance_schema */.global_variables
WHERE VARIABLE_NAME IN ('wsrep_on', 'wsrep_cluster_address', 'group_replication_group_name', 'group_replication_single_primary_mode', 'group_replication_enforce_update_everywhere_checks', 'log_bin', 'binlog_format')
UNION ALL SELECT CAST(VARIABLE_NAME AS CHAR), CAST(VARIABLE_VALUE AS CHAR) FROM ` + statusTables + `
WHERE VARIABLE_NAME IN ('wsrep_ready', 'wsrep_cluster_status', 'wsrep_cluster_state_uuid', 'wsrep_cluster_size')
/*!80000 UNION ALL SELECT CAST(VARIABLE_NAME AS CHAR), CAST(VARIABLE_VALUE AS CHAR) FROM performance_schema.session_variables
WHERE VARIABLE_NAME = 'group_replication_consistency' */
UNION ALL ` + sessionFacts

// sessionFacts are those of the session alone. Vitess says 0 where there is no limit.
const sessionFacts = `SELECT 'autocommit', IF(@@SESSION.autocommit, 'ON', 'OFF')
UNION ALL SELECT 'session', CONCAT_WS(', ', IF(@@SESSION.sql_select_limit < 4294967295 AND (@@SESSION.sql_select_limit > 0 OR @@version_comment NOT LIKE '%(Git%'), CONCAT('sql_select_limit=', @@SESSION.sql_select_limit), NULL),
IF(@@SESSION.sql_safe_updates, 'sql_safe_updates=1', NULL), IF(@@SESSION.completion_type NOT IN ('NO_CHAIN', '0'), CONCAT('completion_type=', @@SESSION.completion_type), NULL))`

const statusTables = "/*M! information_schema *//*!80000 performance_schema */.global_status"

// memberFact follows clusterFacts. The user needs SELECT on that table. Until a server has begun to
// join its group, some versions of MySQL return it OFFLINE, without a MEMBER_ID.
const memberFact = `
/*!80000 UNION ALL SELECT 'member_state', CAST(MEMBER_STATE AS CHAR) FROM performance_schema.replication_group_members WHERE MEMBER_ID IN (@@server_uuid, '') */`

// InGroup returns the dialect of a member of a replication group of MySQL. Its statements acquire,
// renew and guard only where the server is ONLINE in the group; where it is not, a row counts as
// expired, and cannot be acquired. The user needs SELECT on replication_group_members.
func (d Dialect) InGroup() Dialect {
	return d.forMembers("EXISTS (SELECT 1 FROM performance_schema.replication_group_members WHERE MEMBER_ID = @@server_uuid AND MEMBER_STATE = 'ONLINE')")
}

// AwaitingGroup returns the dialect of a server in a replication group whose reads may miss what another
// member has committed: PeekCurrent waits for that. Any user may set this variable for the session, and
// SET_VAR, which would spare the round trips, refuses it.
func (d Dialect) AwaitingGroup() Dialect {
	return d.awaiting("group_replication_consistency", "'BEFORE'")
}

// InGalera returns the dialect of a node of Galera. Its statements acquire, renew and guard only in the
// cluster with that wsrep_cluster_state_uuid, and PeekCurrent waits for what other nodes have committed.
// A node that is started outside of its cluster has none, or another one if it was bootstrapped anew.
//
// A session asks for the cluster's once, because that adds up the counters of all sessions: a server
// that restarts, and a node that is moved to another cluster, closes its sessions.
func (d Dialect) InGalera(cluster string, mariaDB bool) Dialect {
	condition := "@@wsrep_on"
	if cluster != "" { // or it could not be read
		condition += " AND COALESCE(@sqllock_cluster, @sqllock_cluster := (SELECT VARIABLE_VALUE FROM " + statusTables +
			" WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid')) = '" + strings.ReplaceAll(cluster, "'", "") + "'"
	}
	d = d.forMembers(condition)
	if !mariaDB { // it knows no SET STATEMENT
		return d.awaiting("wsrep_sync_wait", "1")
	}
	d.fragments.waits = "SET STATEMENT wsrep_sync_wait=1 FOR "
	return d
}

// ofMembers is the condition of forMembers in a statement that acquires.
const ofMembers = " WHERE {member}"

// forMembers returns the dialect of a server that must meet a condition to acquire, renew and guard.
func (d Dialect) forMembers(condition string) Dialect {
	f := d.fragments
	f.isMember = condition
	f.acquire, f.acquireAll, f.acquireRow = make(map[dialect.Layout]string), make(map[dialect.Layout]string), make(map[dialect.Layout]string)
	for layout, row := range proposedRow {
		f.acquire[layout], f.acquireAll[layout] = selecting(onDuplicateKey[layout], ofMembers), selecting(onDuplicateKeys[layout], ofMembers)
		f.acquireRow[layout] = selectedRow(row)
	}
	d.fragments = f
	return d
}

// awaiting returns the dialect of a server whose reads wait if a variable of the session has a value.
func (d Dialect) awaiting(variable, value string) Dialect {
	d.fragments.before = "SET @sqllock_" + variable + " = @@SESSION." + variable + ", SESSION " + variable + " = " + value
	d.fragments.after = "SET SESSION " + variable + " = @sqllock_" + variable
	return d
}

// OnVitess returns the dialect of a keyspace of Vitess. SET TRANSACTION does not fail inside a transaction there: what an
// application has left open is rolled back. It has no SELECT … INTO, which vtgate 23 does not answer.
func (d Dialect) OnVitess() Dialect {
	d.Outside = "ROLLBACK"
	d.fragments.pickAll, d.fragments.look = "", ""
	return d
}
