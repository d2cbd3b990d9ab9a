package sqllock_test

import (
	"fmt"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/dbtest"
)

// The smallest step changes a row whatever its CREATED_DATE is and however many digits of a second
// the column keeps, since a cluster does not certify a row that stays as it is. Nothing else changes.
func TestGuardByWritingChangesEveryRow(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) *dbtest.DB{"MariaDB": dbtest.MySQL, "MySQL": dbtest.OracleMySQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			for digits := 3; digits <= 6; digits++ {
				table := fmt.Sprintf("T%d_LOCK", digits)
				db.DB.MustExecContext(t.Context(), fmt.Sprintf(`CREATE TABLE %s (LOCK_KEY CHAR(36) NOT NULL, REGION VARCHAR(100) NOT NULL, CLIENT_ID CHAR(36),
CREATED_DATE DATETIME(%d) NOT NULL, EXPIRED_AFTER DATETIME(%d) NOT NULL, PRIMARY KEY (LOCK_KEY, REGION))`, table, digits, digits))
				names, err := dialect.NamesFor(fmt.Sprintf("T%d_", digits))
				must(t, err)
				text := db.Dialect.Statements(dialect.Spring7, names).GuardByWriting
				for _, created := range []string{"2026-01-01 00:00:00", "2026-01-01 23:59:59.999", "2026-01-01 00:00:00.1234", "2026-01-01 00:00:00.12345", "2026-01-01 00:00:00.123456"} {
					db.DB.MustExecContext(t.Context(), "REPLACE INTO "+table+" VALUES ('k', 'r', 'h', ?, '2100-01-01')", created)
					for range 3 {
						changes(t, db.DB, table, text)
					}
				}
			}
		})
	}
}

// changes runs a statement that guards by writing, and checks what it has changed.
func changes(t *testing.T, db *sqlx.DB, table, text string) {
	t.Helper()
	read := func() (row struct{ Owner, Created, Expired string }) {
		must(t, db.GetContext(t.Context(), &row, "SELECT CLIENT_ID AS owner, CAST(CREATED_DATE AS CHAR) AS created, CAST(EXPIRED_AFTER AS CHAR) AS expired FROM "+table))
		return row
	}
	before := read()
	result, err := db.NamedExecContext(t.Context(), text, map[string]any{"region": "r", "key": "k", "holder": "h"})
	must(t, err)
	n, err := result.RowsAffected()
	must(t, err)
	after := read()
	if n != 1 || after.Created <= before.Created || after.Owner != before.Owner || after.Expired != before.Expired {
		t.Errorf("%d rows affected: %v became %v", n, before, after)
	}
}
