package doctor

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/listing"
	"github.com/sqllock/sqllock/internal/probe"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/golden"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

func TestOlderThan(t *testing.T) {
	for version, want := range map[string]bool{
		"PostgreSQL 15.14 (Debian 15.14-0+deb12u1) on x86_64-pc-linux-gnu": false,
		"PostgreSQL 9.6.24 on x86_64-pc-linux-gnu":                         true,
		"PostgreSQL 10.1":                         true,
		"PostgreSQL 11.7":                         false,
		"8.0.43 MySQL Community Server - GPL":     false,
		"5.7.44-log Source distribution":          true,
		"10.11.14-MariaDB-0+deb12u2 Debian 12":    false,
		"10.5.29-MariaDB":                         true,
		"SQLite 3.53.4":                           false,
		"SQLite 3.41.2":                           true,
		"PostgreSQL devel on x86_64-pc-linux-gnu": false,
	} {
		if oldest := probe.EngineOf(version).Oldest; olderThan(version, oldest) != want {
			t.Errorf("%q is older than %s: %v", version, oldest, !want)
		}
	}
}

// A pooler of whole sessions that has no second one lets a connection wait for minutes. That says
// nothing, and the other checks follow.
func TestPoolerWithoutASecondSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, mock, err := sqlmock.New()
		check.Must(t, err)
		defer func() { _ = db.Close() }() // the mock did not expect it
		mock.ExpectQuery("SELECT pg_backend_pid").WillReturnRows(sqlmock.NewRows([]string{"session"}).AddRow("1 now"))
		mock.ExpectQuery("SELECT pg_backend_pid").WillDelayFor(time.Hour).WillReturnRows(sqlmock.NewRows([]string{"session"}).AddRow("1 now"))
		e := &examination{Connection: &connect.Connection{DB: sqlx.NewDb(db, "sqlmock"), Dialect: dialect.Postgres()}}
		began := time.Now()
		if findings := e.checkPooler(t.Context()); findings != nil {
			t.Error(findings)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("took %v", took)
		}
	})
}

// TestStepsAfterALateOne has a step wait in vain. The next is left out if the server does not answer any more, and
// is taken if the step has waited for something else.
func TestStepsAfterALateOne(t *testing.T) {
	t.Parallel()
	late := func(_ *examination, ctx context.Context) []finding {
		<-ctx.Done()
		return []finding{{noteworthy, "late", context.Cause(ctx).Error(), ""}}
	}
	next := func(*examination, context.Context) []finding { return []finding{{good, "next", "", ""}} }
	for name, test := range map[string]struct {
		delay time.Duration
		want  string
	}{"a server that hangs": {time.Hour, "late connection"}, "a table that is locked": {0, "late next"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				db, mock, err := sqlmock.New(sqlmock.MonitorPingsOption(true))
				check.Must(t, err)
				defer func() { _ = db.Close() }() // the mock did not expect it
				mock.ExpectPing()                 // of the connection
				check.Must(t, db.PingContext(t.Context()))
				mock.ExpectPing().WillDelayFor(test.delay)
				e := &examination{Connection: &connect.Connection{DB: sqlx.NewDb(db, "sqlmock")}}
				var subjects []string
				for _, f := range e.run(t.Context(), []step{late, next}) {
					subjects = append(subjects, f.Subject)
				}
				check.Equal(t, "findings", strings.Join(subjects, " "), test.want)
			})
		})
	}
}

// TestFindings keeps the lines about settings and clocks that the servers of the tests do not have, as
// text and as JSON.
func TestFindings(t *testing.T) {
	t.Parallel()
	group := probe.Cluster{Group: "aaaa-bbbb", Member: "ONLINE", SinglePrimary: true, Consistency: "BEFORE_ON_PRIMARY_FAILOVER"}
	everywhere, hidden, offline := group, group, group
	everywhere.UpdatesEverywhere, everywhere.SinglePrimary = true, false
	galera := probe.Cluster{Galera: true, Ready: "ON", Component: "Primary", Size: "3", Address: "gcomm://10.0.0.1,10.0.0.2,10.0.0.3"}
	alone, off := galera, galera
	alone.Size, off.Galera = "1", false
	hidden.Member = ""
	offline.Member = "OFFLINE"
	reparented := time.Date(2026, 11, 25, 22, 52, 41, 0, time.UTC)
	former := reparented.Add(-time.Hour).Format(time.RFC3339)
	tablets := []vitessTablet{{"app", "PRIMARY", "SERVING", "zone1-0000000102", reparented.Format(time.RFC3339)}, {"app", "REPLICA", "SERVING", "zone1-0000000101", ""}, {"app", "PRIMARY", "SERVING", "zone1-0000000103", former}}
	semiSync := map[string]string{"rpl_semi_sync_source_enabled": "ON", "rpl_semi_sync_source_timeout": "1000000000000000000", "rpl_semi_sync_source_wait_no_replica": "ON"}
	for name, findings := range map[string][]finding{
		"clock":                {clockFinding(5*time.Millisecond, 10*time.Millisecond)},
		"clock_ahead":          {clockFinding(3*time.Second, 10*time.Millisecond)},
		"clock_behind":         {clockFinding(-500*time.Millisecond, 10*time.Millisecond)},
		"clock_far_behind":     {clockFinding(-2*time.Hour, 10*time.Millisecond)},
		"galera":               clusterFindings(galera),
		"galera_alone":         clusterFindings(alone),
		"galera_off":           clusterFindings(off),
		"galera_no_quorum":     clusterFindings(probe.Cluster{Galera: true, Ready: "OFF", Component: "non-Primary"}),
		"galera_not_ready":     clusterFindings(probe.Cluster{Galera: true, Ready: "OFF", Component: "Primary"}),
		"group":                clusterFindings(group),
		"group_multi_primary":  clusterFindings(everywhere),
		"group_few_rights":     clusterFindings(hidden),
		"group_no_member":      clusterFindings(offline),
		"mysql_durable":        mysqlSettings{FlushLog: 1, SyncBinlog: 0}.findings(),
		"mysql_not_durable":    mysqlSettings{FlushLog: 2, SyncBinlog: 0, LogBin: 1}.findings(),
		"postgres_alone":       postgresSettings{Fsync: "on", Commit: "on"}.findings(),
		"postgres_not_durable": postgresSettings{Fsync: "off", Commit: "off"}.findings(),
		"postgres_async":       postgresSettings{Fsync: "on", Commit: "on", Standbys: 2}.findings(),
		"postgres_sync":        postgresSettings{Fsync: "on", Commit: "remote_apply", Names: "*", Standbys: 1}.findings(),
		"postgres_local":       postgresSettings{Fsync: "on", Commit: "local", Names: "*", Standbys: 1}.findings(),
		"server": {
			serverFinding("PostgreSQL 15.14 (Debian) on x86_64-pc-linux-gnu", dialect.MySQL(), true), serverFinding("9.7.4-2 MySQL Community Server - GPL", dialect.MySQL(), false),
			serverFinding("10.11.14-MariaDB-0+deb12u2 Debian 12", dialect.MySQL(), false), serverFinding("9.7.4-2 Version: 23.0.0 (Git revision  branch '') built on  by @ using go1.25.4 linux/amd64", dialect.MySQL(), false), serverFinding("5.7.44-log Source distribution", dialect.MySQL(), false), serverFinding("8.0.11-TiDB-v8.5.0 TiDB Server", dialect.TiDB(), false),
		},
		"server_unsupported": {serverFinding("8.0.11-TiDB-v8.5.0 TiDB Server", dialect.MySQL(), false)},
		"server_unverified":  {serverFinding("CockroachDB CCL v25.2.1 (x86_64)", dialect.MySQL(), true)},
		"vitess":             vitessState{tablets, semiSync}.findings(reparented.Add(time.Hour)),
		"vitess_async":       vitessState{tablets, nil}.findings(reparented),
		"vitess_alone":       vitessState{tablets, map[string]string{"rpl_semi_sync_master_enabled": "ON", "rpl_semi_sync_master_timeout": "10000"}}.findings(reparented),
		"vitess_no_primary":  vitessState{tablets[1:2], semiSync}.findings(reparented),
		"times":              timesFindings(javasRows(time.Second, -5*time.Hour), javasRows(time.Second, -5*time.Hour)),
		"times_ahead":        timesFindings(javasRows(-5*time.Hour, time.Minute), javasRows(-5*time.Hour, time.Minute)),
		"times_behind":       timesFindings(listing.Reading{All: true}, javasRows(time.Second, -5*time.Hour)),
		"times_zoned":        timesFindings(javasRows(5*time.Hour+10*time.Second, 20*time.Second-5*time.Hour), javasRows(5*time.Hour+10*time.Second, 20*time.Second-5*time.Hour)),
		"times_whole":        timesFindings(listing.Reading{}, listing.Reading{Rows: slices.Concat(javasRows(time.Second, time.Minute).Rows, javasRows(3*time.Second, time.Minute).Rows)}),
		"one_host":           hostsFindings(session.Choice{Hosts: 1, Any: true}),
		"any_host":           hostsFindings(session.Choice{Hosts: 2, Any: true}),
		"chosen_host":        hostsFindings(session.Choice{Hosts: 3}),
		"pool":               poolFindings("mysql", shortcomings["mysql"]),
		"pool_postgres":      poolFindings("postgres", shortcomings["postgres"]),
		"pool_like_open":     poolFindings("postgres", nil),
		"pooler":             {poolerFinding(false)},
		"pooler_settings":    {poolerFinding(true)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var text bytes.Buffer
			lines, asJSON := writeFindings(&text, findings, false), writeFindings(&text, findings, true)
			if (lines == nil) != (asJSON == nil) {
				t.Errorf("errors %v and %v", lines, asJSON)
			}
			for _, f := range findings {
				if (f.Severity != good) != (f.Advice != "") {
					t.Errorf("%+v: a problem has advice, and nothing else", f)
				}
			}
			golden.Check(t, filepath.Join("testdata", name+".txt"), text.String())
		})
	}
}

// javasRows are two rows of Java's, as they are read at once.
func javasRows(age, left time.Duration) listing.Reading {
	rows := []sqllock.Row{{LockKey: "a", Holder: "billing-java", Age: age, Left: left}, {LockKey: "b", Holder: "billing-java", Age: age, Left: left}}
	return listing.Reading{Rows: rows, All: true}
}
