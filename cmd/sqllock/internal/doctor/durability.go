package doctor

import (
	"context"
	"fmt"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/dialect"
)

// forgets is what a server does that does not write each commit to the disk.
const forgets = ": a crash of the machine forgets the last commits, so that a lock, a fencing token or a guarded write that was acknowledged may be gone"

// checkDurability checks that what was committed survives a crash, and the loss of the server.
func (e *examination) checkDurability(ctx context.Context) []finding {
	var findings []finding
	var err error
	switch e.Dialect {
	case dialect.MySQL():
		findings, err = e.mysqlDurability(ctx)
	case dialect.Postgres():
		findings, err = e.postgresDurability(ctx)
	default: // TiDB's storage is of several machines
		return nil
	}
	if err != nil {
		return []finding{{noteworthy, "durability", "not known: " + exit.Text(err), "check what the server does at a commit: it must write to its disk"}}
	}
	return findings
}

// A mysqlSettings has what MySQL does at a commit.
type mysqlSettings struct {
	FlushLog   int `db:"flush_log"`
	SyncBinlog int `db:"sync_binlog"`
	LogBin     int `db:"log_bin"`
}

func (e *examination) mysqlDurability(ctx context.Context) ([]finding, error) {
	var s mysqlSettings
	err := e.DB.GetContext(ctx, &s, "SELECT @@innodb_flush_log_at_trx_commit AS flush_log, @@sync_binlog AS sync_binlog, @@log_bin AS log_bin")
	return s.findings(), err
}

func (s mysqlSettings) findings() (findings []finding) {
	if s.FlushLog != 1 {
		findings = append(findings, finding{noteworthy, "durability", fmt.Sprintf("innodb_flush_log_at_trx_commit is %d", s.FlushLog) + forgets, "set innodb_flush_log_at_trx_commit = 1"})
	}
	// At its recovery the server rolls back what is not in the binary log.
	if s.LogBin != 0 && s.SyncBinlog != 1 {
		findings = append(findings, finding{
			noteworthy, "durability", fmt.Sprintf("sync_binlog is %d", s.SyncBinlog) + forgets,
			"set sync_binlog = 1",
		})
	}
	return findings
}

// A postgresSettings has what PostgreSQL does at a commit, and for whom.
type postgresSettings struct {
	Fsync    string `db:"fsync"`
	Commit   string `db:"commit"`
	Names    string `db:"names"`
	Standbys int    `db:"standbys"`
}

// A user with few rights does not see the state of a standby, but that there is one. What reads
// through a logical slot is no copy of the server.
const postgresSettingsQuery = `SELECT current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS commit,
current_setting('synchronous_standby_names') AS names,
(SELECT count(*) FROM pg_stat_replication AS r WHERE COALESCE(r.state, 'streaming') = 'streaming'
AND NOT EXISTS (SELECT 1 FROM pg_replication_slots AS s WHERE s.active_pid = r.pid AND s.slot_type = 'logical')) AS standbys`

func (e *examination) postgresDurability(ctx context.Context) ([]finding, error) {
	var s postgresSettings
	err := e.DB.GetContext(ctx, &s, postgresSettingsQuery)
	return s.findings(), err
}

func (s postgresSettings) findings() (findings []finding) {
	if s.Fsync == "off" {
		findings = append(findings, finding{noteworthy, "durability", "fsync is off" + forgets, "set fsync = on"})
	}
	if s.Commit == "off" {
		findings = append(findings, finding{noteworthy, "durability", "synchronous_commit is off" + forgets, "set synchronous_commit = on for this user and database, or in the DSN"})
	}
	switch {
	case s.Standbys > 0 && s.Names == "":
		findings = append(findings, finding{
			noteworthy, "replication", fmt.Sprintf("%s, and synchronous_standby_names is empty: a failover forgets the last commits, and gives fencing tokens out again", standbys(s.Standbys)),
			"set synchronous_standby_names (Patroni: synchronous_mode), or do not fail over automatically",
		})
	case s.Names != "" && (s.Commit == "local" || s.Commit == "off"):
		findings = append(findings, finding{
			noteworthy, "replication", "synchronous_commit is " + s.Commit + ": commits do not wait for the synchronous standby, so a failover forgets the last ones",
			"set synchronous_commit = on for this user and database, or in the DSN",
		})
	case s.Standbys > 0:
		findings = append(findings, finding{good, "replication", standbys(s.Standbys) + ", and commits wait for the synchronous ones", ""})
	}
	return findings
}

func standbys(n int) string {
	if n == 1 {
		return "the server has a standby"
	}
	return fmt.Sprintf("the server has %d standbys", n)
}
