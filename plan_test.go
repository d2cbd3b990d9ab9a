package sqllock_test

import (
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

// A lock table is often empty when PostgreSQL counts it, and full a moment later. A plan for
// one row must not compare ten thousand leases with as many rows each: that took 15
// seconds, in which they ended.
func TestThePlansForManyDoNotMultiply(t *testing.T) {
	t.Parallel()
	db := dbtest.Postgres(t)
	must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
	const fill = `INSERT INTO INT_LOCK SELECT i, 'r', i, now(), now() + INTERVAL '1 hour' FROM generate_series(1, 3000) AS i`
	db.DB.MustExec(fill)
	db.DB.MustExec("DELETE FROM INT_LOCK")
	db.DB.MustExec("VACUUM (ANALYZE, TRUNCATE FALSE) INT_LOCK") // its pages stay
	db.DB.MustExec(fill)
	names, err := dialect.NamesFor("")
	must(t, err)
	texts := dialect.Postgres().Statements(dialect.Spring7, names)
	for name, text := range map[string]string{
		"RenewAll": texts.RenewAll, "HeldAll": texts.HeldAll, "DeleteExpired": texts.DeleteExpired,
	} {
		bound, args, err := sqlx.Named("EXPLAIN "+text, map[string]any{
			"region": "r", "keys": `["1"]`, "holders": `["1"]`, "left": 1,
		})
		must(t, err)
		var lines []string
		must(t, db.DB.SelectContext(t.Context(), &lines, sqlx.Rebind(sqlx.DOLLAR, bound), args...))
		plan := strings.Join(lines, "\n")
		if strings.Contains(plan, "Join") || strings.Contains(plan, "Nested Loop") || !strings.Contains(plan, "hashed SubPlan") {
			t.Errorf("%s:\n%s", name, plan)
		}
	}
}
