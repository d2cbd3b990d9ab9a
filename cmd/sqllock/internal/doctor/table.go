package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/locktable"
)

func (e *examination) checkTable(ctx context.Context) []finding {
	// checkFence checks the source of fencing tokens.
	r, err := e.flags.Repository(ctx, e.Connection, sqllock.RepositoryOptions{ClientID: "doctor", DisableFencing: true})
	if err != nil {
		return []finding{{broken, "table", exit.Text(err), e.tableAdvice(ctx, err)}}
	}
	e.repository = r
	text := e.names.Lock + ", layout " + r.Layout().String()
	if r.Layout() == dialect.Spring6 {
		return []finding{{
			good, "table", text + " (no EXPIRED_AFTER)",
			"all programs that use the table must have the same time-to-live; when no Spring before 7 uses it any more: sqllock migrate up --layout spring7",
		}}
	}
	return []finding{{good, "table", text, ""}}
}

// checkFence checks the source of fencing tokens. Spring's own script does not create it.
func (e *examination) checkFence(ctx context.Context) []finding {
	switch {
	case e.repository == nil:
		return nil
	case e.flags.NoFencing:
		return []finding{{good, "fence", "--no-fencing: locks have no fencing tokens", ""}}
	}
	r, err := e.flags.Repository(ctx, e.Connection, sqllock.RepositoryOptions{ClientID: "doctor"})
	if err != nil {
		return []finding{{broken, "fence", exit.Text(err), e.fenceAdvice(err)}}
	}
	e.repository = r
	return []finding{{good, "fence", "fencing tokens come from " + e.names.Fence, ""}}
}

// checkNames checks the table of names, which may be missing.
func (e *examination) checkNames(ctx context.Context) []finding {
	if e.repository == nil {
		return nil
	}
	_, err := e.SQL().ExecContext(ctx, "UPDATE "+e.names.Name+" SET SEEN = SEEN WHERE 1 = 0")
	switch {
	case err == nil:
		return []finding{{good, "names", "keys and processes are named in " + e.names.Name, ""}}
	case e.Dialect.Classify(err) == dialect.Schema:
		return []finding{{noteworthy, "names", "there is no " + e.names.Name + ": locks of other hosts are shown as hashes", "docs/schema.md#the-table-of-names has the statements; nothing else depends on it"}}
	default:
		return []finding{{noteworthy, "names", exit.Text(err), "let the user SELECT, INSERT, UPDATE and DELETE in " + e.names.Name + "; nothing else depends on it"}}
	}
}

func (e *examination) fenceAdvice(err error) string {
	if errors.Is(err, sqllock.ErrSchema) && !e.MissesTable(err) {
		return "docs/schema.md has the statements (MariaDB's sequence): stop the programs that use locks first"
	}
	return fmt.Sprintf("sqllock migrate up --layout %v creates it beside the table; without it a program can only lock with the option DisableFencing, and the command with --no-fencing",
		e.repository.Layout())
}

func (e *examination) tableAdvice(ctx context.Context, err error) string {
	switch {
	case e.cluster.Problem() != nil:
		return "see the line about the cluster above"
	case locktable.Is(err, locktable.Unsupported):
		return "see the line about the server above"
	case e.MissesTable(err):
		return connect.MigrateUp(e.flags.Prefix) + " creates it; --prefix selects another"
	case errors.Is(err, sqllock.ErrSchema) && e.hasWrongTimes(ctx):
		return "see the line about precision below"
	case errors.Is(err, sqllock.ErrSchema):
		return "select another table with --prefix, or change this one while no program uses it"
	default:
		return e.rightsAdvice()
	}
}

// triggersOf return what the server itself does to the rows of a table. Those of
// docs/notify.md are left out.
var triggersOf = map[string]string{
	"postgres": `SELECT 'the trigger ' || tgname FROM pg_trigger JOIN pg_proc ON pg_proc.oid = tgfoid
	WHERE tgrelid = CAST({table} AS regclass) AND NOT tgisinternal AND tgenabled <> 'D' AND proname <> 'sqllock_notify'
UNION ALL SELECT 'the rule ' || rulename FROM pg_rewrite WHERE ev_class = CAST({table} AS regclass) AND rulename <> '_RETURN'
UNION ALL SELECT 'row-level security' FROM pg_class WHERE oid = CAST({table} AS regclass) AND relrowsecurity`,
	"mysql": `SELECT CONCAT('the trigger ', TRIGGER_NAME) FROM information_schema.TRIGGERS
WHERE EVENT_OBJECT_SCHEMA = COALESCE(NULLIF({schema}, ''), DATABASE()) AND EVENT_OBJECT_TABLE = {name}`,
	"sqlite": `SELECT 'the trigger ' || name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = {name} COLLATE NOCASE`,
}

// checkTriggers names what may change or drop what is written to the table. The round trip cannot show it:
// a trigger may choose its rows. On MySQL and MariaDB a user without the right TRIGGER sees none.
func (e *examination) checkTriggers(ctx context.Context) []finding {
	if e.repository == nil {
		return nil // there is a finding about the table
	}
	quoted := func(name string) string { return "'" + name + "'" } // it is checked
	query := strings.NewReplacer("{table}", quoted(e.names.Lock), "{schema}", quoted(e.names.Schema), "{name}", quoted(e.names.Prefix+"LOCK")).
		Replace(triggersOf[e.Dialect.Name])
	var found []string
	if err := e.DB.SelectContext(ctx, &found, query); err != nil {
		return []finding{{noteworthy, "triggers", "not known: " + exit.Text(err), "check that no trigger changes or drops what is written to " + e.names.Lock}}
	}
	if len(found) == 0 {
		return nil
	}
	return []finding{{
		noteworthy, "triggers", e.names.Lock + " has " + strings.Join(found, ", "),
		"it must let each INSERT, UPDATE and DELETE of a lock through, and change no column: otherwise leases are lost, and rows stay until they expire",
	}}
}
