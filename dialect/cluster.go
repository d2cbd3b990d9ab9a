package dialect

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
WHERE VARIABLE_NAME IN ('wsrep_on', 'wsrep_cluster_address', 'group_replication_group_name', 'group_replication_single_primary_mode', 'group_replication_enforce_update_everywhere_checks')
UNION ALL SELECT CAST(VARIABLE_NAME AS CHAR), CAST(VARIABLE_VALUE AS CHAR) FROM ` + statusTables + `
WHERE VARIABLE_NAME IN ('wsrep_ready', 'wsrep_cluster_status', 'wsrep_cluster_state_uuid', 'wsrep_cluster_size')
/*!80000 UNION ALL SELECT CAST(VARIABLE_NAME AS CHAR), CAST(VARIABLE_VALUE AS CHAR) FROM performance_schema.session_variables
WHERE VARIABLE_NAME = 'group_replication_consistency' */
UNION ALL SELECT 'autocommit', IF(@@SESSION.autocommit, 'ON', 'OFF')
UNION ALL SELECT 'session', CONCAT_WS(', ', IF(@@SESSION.sql_select_limit < 4294967295, CONCAT('sql_select_limit=', @@SESSION.sql_select_limit), NULL),
IF(@@SESSION.sql_safe_updates, 'sql_safe_updates=1', NULL), IF(@@SESSION.completion_type <> 'NO_CHAIN', CONCAT('completion_type=', @@SESSION.completion_type), NULL))`

const statusTables = "/*M! information_schema *//*!80000 performance_schema */.global_status"

// memberFact follows clusterFacts. The user needs SELECT on that table. Until a server has begun to
// join its group, some versions of MySQL return it OFFLINE, without a MEMBER_ID.
const memberFact = `
/*!80000 UNION ALL SELECT 'member_state', CAST(MEMBER_STATE AS CHAR) FROM performance_schema.replication_group_members WHERE MEMBER_ID IN (@@server_uuid, '') */`
