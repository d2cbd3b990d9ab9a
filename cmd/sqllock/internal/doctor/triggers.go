package doctor

import (
	"context"
	"strings"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
)

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
