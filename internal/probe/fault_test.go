package probe

import (
	"testing"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
)

// The column has the ends of leases while MySQL migrates to version 2. Whoever drops it loses them.
func TestInterruptedMigration(t *testing.T) {
	t.Parallel()
	for layout, want := range map[dialect.Layout]Fault{
		dialect.Spring6: {Table: "P_LOCK", Text: "has the column LEASE_END in place of EXPIRED_AFTER, since a migration to version 2 was interrupted", Cure: "sqllock migrate goto 2 --prefix P_"},
		dialect.Spring7: {Table: "P_LOCK", Text: "has a column LEASE_END without a default, which sqllock does not fill", Cure: "drop the column, give it a default, or let it be NULL" + whileUnused},
	} {
		c := catalog{
			inspector: inspector{dialect: sqltext.MySQL(), names: check.Value(sqltext.NamesFor("P_"))(t)},
			columns:   map[string]column{"LEASE_END": {name: "LEASE_END"}},
		}
		c.judgeColumns(layout)
		check.Same(t, layout.String(), c.faults, []Fault{want})
	}
}
