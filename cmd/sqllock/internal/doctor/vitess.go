package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/internal/probe"
)

// A vitessState is what a vtgate says of the tablets, and the primary of its semi-synchronous replication.
type vitessState struct {
	tablets   []vitessTablet // of the keyspace
	variables map[string]string
}

type vitessTablet struct {
	Keyspace string `db:"Keyspace"`
	Type     string `db:"TabletType"`
	State    string `db:"State"`
	Alias    string `db:"Alias"`
	Since    string `db:"PrimaryTermStartTime"`
}

// checkVitess checks what a reparent does to the locks. A vtgate does not say the durability policy of a keyspace, but its
// primary is set up as the policy says. That the keyspace is sharded, checkTable finds.
func (e *examination) checkVitess(ctx context.Context) []finding {
	keyspace, err := probe.Keyspace(ctx, e.SQL(), e.names)
	var state vitessState
	if err == nil {
		state, err = readVitess(ctx, e.DB.Unsafe(), keyspace)
	}
	if err != nil {
		return []finding{{noteworthy, "cluster", "the tablets are not known: " + exit.Text(err), "check the primary and the durability policy by vtctldclient"}}
	}
	findings := state.findings(time.Now())
	if e.names.Schema != "" && len(findings) > 1 { // the variables are those of the keyspace of the DSN
		findings[1] = finding{noteworthy, "replication", "not known for the keyspace " + keyspace + ", which the prefix names", "run sqllock doctor with a DSN of that keyspace, too"}
	}
	return findings
}

func readVitess(ctx context.Context, db *sqlx.DB, keyspace string) (state vitessState, err error) {
	if err := db.SelectContext(ctx, &state.tablets, "SHOW VITESS_TABLETS"); err != nil {
		return state, err
	}
	state.tablets = slices.DeleteFunc(state.tablets, func(t vitessTablet) bool { return t.Keyspace != keyspace })
	var rows []struct{ Name, Value string }
	if err := db.SelectContext(ctx, &rows, "SHOW GLOBAL VARIABLES LIKE 'rpl_semi_sync_%'"); err != nil {
		return state, err
	}
	state.variables = make(map[string]string, len(rows))
	for _, row := range rows {
		state.variables[row.Name] = row.Value
	}
	return state, nil
}

func (s vitessState) findings(now time.Time) (findings []finding) {
	// One that was replaced may go on saying that it is the primary: the last one counts.
	var primary vitessTablet
	for _, t := range s.tablets {
		if t.Type == "PRIMARY" && t.State == "SERVING" && t.Since >= primary.Since {
			primary = t
		}
	}
	if primary.Alias == "" {
		return []finding{{broken, "cluster", "Vitess, and no tablet of the keyspace is a primary that serves", "start vtorc, or vtctldclient EmergencyReparentShard"}}
	}
	text := fmt.Sprintf("Vitess, %d tablets, the primary is %s", len(s.tablets), primary.Alias)
	if since, err := time.Parse(time.RFC3339, primary.Since); err == nil {
		text += fmt.Sprintf(", which took over %v ago", now.Sub(since).Round(time.Second))
	}
	findings = append(findings, finding{good, "cluster", text, ""})
	// Longer than any outage: until then a primary without a replica acknowledges nothing.
	const forever = 24 * time.Hour
	timeout, _ := strconv.ParseFloat(s.semiSync("timeout"), 64) // in ms; without the plugin there is none
	switch {
	case s.semiSync("enabled") != "ON":
		return append(findings, finding{
			noteworthy, "replication", "it is not semi-synchronous: a reparent forgets the last commits, and gives fencing tokens out again",
			"vtctldclient SetKeyspaceDurabilityPolicy --durability-policy=semi_sync, and three tablets or more",
		})
	case timeout < float64(forever.Milliseconds()), s.semiSync("wait_no_replica") != "ON":
		return append(findings, finding{
			noteworthy, "replication", "a primary that has lost its replicas goes on alone after " + s.semiSync("timeout") + " ms: a reparent forgets what it has committed then",
			"set loose_rpl_semi_sync_source_timeout = 1000000000000000000 and loose_rpl_semi_sync_source_wait_no_replica = ON in the my.cnf of the tablets",
		})
	}
	return append(findings, finding{good, "replication", "semi-synchronous: a commit waits for a replica", ""})
}

// semiSync returns a variable of the plugin, whose old version has other names.
func (s vitessState) semiSync(name string) string {
	if value, ok := s.variables["rpl_semi_sync_source_"+name]; ok {
		return value
	}
	return s.variables["rpl_semi_sync_master_"+strings.ReplaceAll(name, "replica", "slave")]
}
