package doctor

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/dialect"
)

// oldAfter is how old a snapshot may be: locks that come and go leave dead rows, which the server must keep for it.
const oldAfter = time.Minute

// postgresSnapshots are what keeps VACUUM from removing dead rows: sessions, prepared transactions, and
// replication slots, which also stand for what a standby's sessions still read. Without the right
// pg_read_all_stats a user does not see when a transaction of another user's has begun, nor of what type its
// session is. A slot has no time, but an age in transactions. So the first row need not be one that is old.
const postgresSnapshots = `SELECT 'session ' || pid AS name, CONCAT_WS(', ', usename, NULLIF(application_name, ''), host(client_addr), state) AS who,
	COALESCE(EXTRACT(EPOCH FROM clock_timestamp() - xact_start), 0) AS seconds, COALESCE(age(backend_xmin), age(backend_xid), 0) AS behind
FROM pg_stat_activity WHERE (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL) AND pid <> pg_backend_pid() AND backend_type IS DISTINCT FROM 'autovacuum worker'
	AND (datname = current_database() OR datname IS NULL)
UNION ALL SELECT 'prepared transaction ' || gid, owner, EXTRACT(EPOCH FROM clock_timestamp() - prepared), age(transaction)
FROM pg_prepared_xacts WHERE database = current_database()
UNION ALL SELECT 'replication slot ' || slot_name, CASE WHEN active THEN 'active' ELSE 'inactive' END, 0, age(xmin)
FROM pg_replication_slots WHERE xmin IS NOT NULL
ORDER BY behind DESC, seconds DESC`

// mysqlSnapshots are the transactions that InnoDB keeps old versions of rows for. They take the right PROCESS. A
// transaction's start is in the zone of the server's system.
const mysqlSnapshots = `SELECT CONCAT('session ', t.trx_mysql_thread_id) AS name, CONCAT_WS(', ', p.USER, p.HOST, p.DB) AS who,
	TIMESTAMPDIFF(SECOND, t.trx_started, CONVERT_TZ(NOW(), @@time_zone, 'SYSTEM')) AS seconds, 0 AS behind
FROM information_schema.INNODB_TRX AS t LEFT JOIN information_schema.PROCESSLIST AS p ON p.ID = t.trx_mysql_thread_id
ORDER BY t.trx_started LIMIT 1`

// manyBehind is how many transactions a replication slot may be behind.
const manyBehind = 100_000

// A snapshot is one for which the server keeps dead rows.
type snapshot struct {
	Name    string  `db:"name"`
	Who     string  `db:"who"`
	Seconds float64 `db:"seconds"`
	Behind  int64   `db:"behind"`
}

// checkSnapshots looks for an old snapshot. It makes a key that is acquired often slower by the minute: the server
// passes over all rows of it that have died since. What the user may not see is no finding.
func (e *examination) checkSnapshots(ctx context.Context) []finding {
	found, err := e.snapshots(ctx)
	if err != nil {
		return nil
	}
	for _, s := range found {
		if s.isOld() {
			return []finding{s.finding()}
		}
	}
	return nil
}

// snapshots returns those there are, or of MySQL the oldest one alone.
func (e *examination) snapshots(ctx context.Context) (found []snapshot, err error) {
	query := map[dialect.Dialect]string{dialect.Postgres(): postgresSnapshots, dialect.MySQL(): mysqlSnapshots}[e.Dialect]
	if query == "" {
		return nil, nil
	}
	err = e.DB.SelectContext(ctx, &found, query)
	return found, err
}

func (s snapshot) isOld() bool {
	return time.Duration(s.Seconds*float64(time.Second)) > oldAfter || s.Behind > manyBehind
}

func (s snapshot) finding() finding {
	age := fmt.Sprintf("%d transactions", s.Behind)
	if s.Seconds > 0 {
		age = (time.Duration(s.Seconds) * time.Second).String()
	}
	return finding{
		noteworthy, "snapshot", fmt.Sprintf("%s (%s) has a snapshot that is %s old: the server keeps all rows that have died since, and keys that are acquired often become slower",
			s.Name, cmp.Or(s.Who, "unknown"), age),
		"end that transaction, or the long query of the standby, or drop the slot if nothing uses it. idle_in_transaction_session_timeout (PostgreSQL, MariaDB: idle_transaction_timeout) ends what is forgotten",
	}
}
