package doctor

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/test/golden"
)

// TestFindings keeps the lines about settings and clocks that the servers of the tests do not have, as
// text and as JSON.
func TestFindings(t *testing.T) {
	t.Parallel()
	group := locktable.Cluster{Group: "aaaa-bbbb", Member: "ONLINE", SinglePrimary: true, Consistency: "BEFORE_ON_PRIMARY_FAILOVER"}
	everywhere, hidden, offline := group, group, group
	everywhere.UpdatesEverywhere, everywhere.SinglePrimary = true, false
	galera := locktable.Cluster{Galera: true, Ready: "ON", Component: "Primary", Size: "3", Address: "gcomm://10.0.0.1,10.0.0.2,10.0.0.3"}
	alone, off := galera, galera
	alone.Size, off.Galera = "1", false
	hidden.Member = ""
	offline.Member = "OFFLINE"
	for name, findings := range map[string][]finding{
		"clock":                {clockFinding(5*time.Millisecond, 10*time.Millisecond)},
		"clock_ahead":          {clockFinding(3*time.Second, 10*time.Millisecond)},
		"clock_behind":         {clockFinding(-500*time.Millisecond, 10*time.Millisecond)},
		"clock_far_behind":     {clockFinding(-2*time.Hour, 10*time.Millisecond)},
		"galera":               clusterFindings(galera),
		"galera_alone":         clusterFindings(alone),
		"galera_off":           clusterFindings(off),
		"galera_no_quorum":     clusterFindings(locktable.Cluster{Galera: true, Ready: "OFF", Component: "non-Primary"}),
		"galera_not_ready":     clusterFindings(locktable.Cluster{Galera: true, Ready: "OFF", Component: "Primary"}),
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
		"one_host":             hostsFindings(session.Choice{Hosts: 1, Any: true}),
		"any_host":             hostsFindings(session.Choice{Hosts: 2, Any: true}),
		"chosen_host":          hostsFindings(session.Choice{Hosts: 3}),
		"pool":                 poolFindings(shortcomings["mysql"]),
		"pool_postgres":        poolFindings(shortcomings["postgres"]),
		"pool_like_open":       poolFindings(nil),
		"pooler":               {poolerFinding(false)},
		"pooler_settings":      {poolerFinding(true)},
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
