package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/probe"
	"github.com/sqllock/sqllock/internal/sqltext"
)

// checkTable checks the table, and that of names, which nothing depends on.
func (e *examination) checkTable(ctx context.Context) []finding {
	// checkFence checks the source of fencing tokens.
	unfenced := sqllock.RepositoryOptions{ClientID: "doctor", DisableFencing: true}
	faults, err := e.flags.Faults(ctx, e.Connection, unfenced)
	e.exists = err == nil
	findings := e.faultFindings(faults)
	if err == nil && !slices.ContainsFunc(findings, isBroken) {
		e.repository, err = e.flags.Repository(ctx, e.Connection, unfenced)
	}
	if err != nil {
		return append(findings, finding{broken, "table", textOf(err), e.tableAdvice(ctx, err)})
	}
	if e.repository == nil {
		return findings
	}
	f := finding{good, "table", e.names.Lock + ", layout " + e.repository.Layout().String(), ""}
	if e.repository.Layout() == dialect.Spring6 {
		f.Text += " (no EXPIRED_AFTER)"
		f.Advice = "all programs that use the table must have the same time-to-live"
	}
	return append([]finding{f}, findings...)
}

// faultFindings prints what Open refuses, and what it bears.
func (e *examination) faultFindings(faults []probe.Fault) (findings []finding) {
	subjects := map[string]string{e.names.Lock: "table", e.names.Fence: "fence", e.names.Name: "names"}
	for _, f := range faults {
		severity := broken
		if f.Bearable {
			severity = noteworthy
		}
		findings = append(findings, finding{severity, subjects[f.Table], f.String(), f.Cure})
	}
	return findings
}

func isBroken(f finding) bool { return f.Severity == broken }

// checkFence checks the source of fencing tokens. Spring's own script does not create it.
func (e *examination) checkFence(ctx context.Context) []finding {
	switch {
	case !e.exists:
		return nil
	case e.flags.NoFencing:
		return []finding{{good, "fence", "--no-fencing: locks have no fencing tokens", ""}}
	}
	faults, err := e.flags.Faults(ctx, e.Connection, sqllock.RepositoryOptions{})
	findings := e.faultFindings(slices.DeleteFunc(faults, func(f probe.Fault) bool { return f.Table != e.names.Fence }))
	if err == nil && e.repository != nil && !slices.ContainsFunc(findings, isBroken) {
		e.repository, err = e.flags.Repository(ctx, e.Connection, sqllock.RepositoryOptions{ClientID: "doctor"})
	}
	switch {
	case err != nil:
		return []finding{{broken, "fence", textOf(err), e.fenceAdvice(ctx, err)}}
	case len(findings) > 0:
		return findings
	default:
		return []finding{{good, "fence", "fencing tokens come from " + e.names.Fence, ""}}
	}
}

// checkNames checks the table of names, which may be missing.
func (e *examination) checkNames(ctx context.Context) []finding {
	if e.repository == nil {
		return nil
	}
	_, err := e.SQL().ExecContext(ctx, "UPDATE "+e.names.Name+" SET SEEN = SEEN WHERE 1 = 0")
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	switch {
	case err != nil && sqltext.Of(e.Dialect).Classify(err) == sqltext.ReadOnly:
		return nil // it is the finding of checkWrites
	case err == nil:
		return []finding{{good, "names", "keys and processes are named in " + e.names.Name, ""}}
	case sqltext.Of(e.Dialect).Classify(err) == sqltext.Schema:
		return []finding{{noteworthy, "names", "there is no " + e.names.Name + ": locks of other hosts are shown as hashes", "docs/schema.md#the-table-of-names has the statements; nothing else depends on it"}}
	default:
		return []finding{{noteworthy, "names", textOf(err), e.rightAdvice(ctx, err, e.names.Name, "let the user SELECT, INSERT, UPDATE and DELETE in "+e.names.Name+"; nothing else depends on it")}}
	}
}

func (e *examination) fenceAdvice(ctx context.Context, err error) string {
	layout := dialect.Spring7
	if dbcall.Is(err, dbcall.NoFence) {
		layout = dialect.Spring6
	}
	return e.rightAdvice(ctx, err, e.names.Fence, fmt.Sprintf("%s --layout %v creates it beside the table; without it a program can only lock with the option DisableFencing, and the command with --no-fencing", dbcall.MigrateUp(e.flags.Prefix), layout))
}

func (e *examination) tableAdvice(ctx context.Context, err error) string {
	switch {
	case e.cluster.Problem() != nil:
		return "see the line about the cluster above"
	case dbcall.Is(err, dbcall.Unsupported):
		return "see the line about the server above"
	case e.MissesTable(err):
		return dbcall.MigrateUp(e.flags.Prefix) + " creates it; --prefix selects another"
	default:
		return e.rightAdvice(ctx, err, e.names.Lock, e.rightsAdvice())
	}
}

// triggersOf return what the server itself does to the rows of a table. Those of
// docs/waiting.md are left out.
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
		Replace(triggersOf[sqltext.Of(e.Dialect).Name])
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
