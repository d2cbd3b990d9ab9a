package servers_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// The tests here fill a lock table with so many rows, and execute each statement of the dialect that is for rows that
// are named. The server counts the rows that it reads for that.
const plannedRows = 200_000

// mayRead are the statements that are not for rows that are named, or for no rows of the lock table at all.
var mayRead = []string{
	"List", "ListFirst", "Count", "PickExpired", "DeleteExpired", "PickClient", "DeleteClient", "CountClient", // read the whole table
	"AcquireRow", "PickRow", "IfAll", "AllPicked", "Isolation", "Outcome", "Number", "DrawOne", "Trim", "BeforeCurrent", "AfterCurrent", "Columns", "Tables", "Fence", "Clock",
	"Cluster", "ClusterVariables", "ReadOnly", "Version", "File",
	"WriteNames", "WriteName", "Names", "OldNames", "DeleteNames",
}

// A planned statement is one of a dialect, for a number of keys.
type planned struct {
	name, text string
	args       []any
	keys       int
}

// plannedStatements returns all statements of a dialect that are for rows that are named: by reflection, so that none
// is forgotten. Those for several rows are there for as many as the library sends at most, below a hundredth of the
// table.
func plannedStatements(t *testing.T, d sqltext.Dialect) (all []planned) {
	t.Helper()
	return plannedStatementsOf(t, d, dialect.Spring7)
}

func plannedStatementsOf(t *testing.T, d sqltext.Dialect, layout dialect.Layout) (all []planned) {
	t.Helper()
	names := check.Value(sqltext.NamesFor(""))(t)
	texts := d.Statements(layout, names)
	v := reflect.ValueOf(texts)
	for i := range v.NumField() {
		name, text := v.Type().Field(i).Name, v.Field(i).String()
		if text == "" || slices.Contains(mayRead, name) {
			continue
		}
		counts := []int{1}
		if strings.Contains(text, ":keys") || strings.Contains(text, ":rows") {
			counts = []int{1, 100, 1999}
		}
		for _, keys := range counts {
			row := texts.AcquireRow
			if name == "PickAll" {
				row = texts.PickRow
			}
			all = append(all, boundFor(t, d, name, text, row, keys))
		}
	}
	return all
}

// boundFor binds a text as the library does.
func boundFor(t *testing.T, d sqltext.Dialect, name, text, row string, n int) planned {
	t.Helper()
	type one struct {
		Key    string `json:"k"`
		Holder string `json:"h"`
		Left   int64  `json:"l"`
	}
	values := map[string]any{
		"region": "r", "key": "100000", "holder": "h100000", "next": "n-0", "ttl": int64(1), "left": int64(1), "shift": int64(0), "turn": int64(1),
	}
	var keys, holders, rowTexts []string
	var rows []one
	for i := range n {
		key := fmt.Sprint(100_000 + 7*i)
		keys, holders, rows = append(keys, key), append(holders, "h"+key), append(rows, one{key, "h" + key, 1})
		values["key"+key], values["holder"+key] = key, "h"+key
		rowTexts = append(rowTexts, strings.NewReplacer(":key", ":key"+key, ":holder", ":holder"+key).Replace(row))
	}
	values["keys"], values["holders"] = any(keys), any(holders)
	if d.JSONLists {
		values["keys"], values["holders"], values["rows"] = inJSON(t, keys), inJSON(t, holders), inJSON(t, rows)
	} else {
		text = strings.Replace(text, ":rows", strings.Join(rowTexts, ", "), 1)
	}
	bound, args, err := sqlx.Named(text, values)
	must(t, err)
	if !d.JSONLists {
		bound, args, err = sqlx.In(bound, args...)
		must(t, err)
	}
	if d.Numbered {
		bound = sqlx.Rebind(sqlx.DOLLAR, bound)
	}
	return planned{name: fmt.Sprintf("%s of %d", name, n), text: bound, args: args, keys: n}
}

func inJSON(t *testing.T, v any) string {
	t.Helper()
	text := check.Value(json.Marshal(v))(t)
	return string(text)
}

// A planner is one session, and the statements that it has prepared.
type planner struct {
	*testing.T

	name       string
	session    *sqlx.Conn
	counter    string // a query for the number of rows that the session has read
	statements []planned
	prepared   []*sql.Stmt
}

func newPlanner(t *testing.T, name string, pool *sqlx.DB, d sqltext.Dialect, counter string, settings ...string) *planner {
	t.Helper()
	session := check.Value(pool.Connx(t.Context()))(t)
	t.Cleanup(func() { must(t, session.Close()) })
	for _, setting := range settings {
		must(t, check.ErrorOf(session.ExecContext(t.Context(), setting)))
	}
	p := &planner{t, name, session, counter, plannedStatements(t, d), nil}
	for _, s := range p.statements {
		stmt, err := session.PreparexContext(t.Context(), s.text)
		if err != nil {
			t.Fatalf("%s: %s: %v", name, s.name, err)
		}
		t.Cleanup(func() { must(t, stmt.Close()) })
		p.prepared = append(p.prepared, stmt.Stmt)
	}
	return p
}

// empty is when the table has no rows, and never had any.
const empty = "empty"

// execute executes each statement so often, each time in a transaction that is rolled back, and checks that it reads
// few rows more than it has keys.
func (p *planner) execute(when string, times int) {
	p.Helper()
	for i, s := range p.statements {
		if when == empty && strings.HasPrefix(s.name, "Acquire") {
			continue // a row that is rolled back takes its place in the table all the same
		}
		for range times {
			p.executeOne(when, i)
		}
	}
}

func (p *planner) executeOne(when string, i int) {
	p.Helper()
	s := p.statements[i]
	tx := check.Value(p.session.BeginTxx(p.Context(), nil))(p.T)
	before := p.read(tx)
	p.executeAll(tx, i, when)
	if read := p.read(tx) - before; read > 100+2*s.keys+s.keys/8 {
		p.Errorf("%s, %s: %s reads %d rows", p.name, when, s.name, read)
	}
	must(p.T, tx.Rollback())
}

func (p *planner) executeAll(tx *sqlx.Tx, i int, when string) {
	p.Helper()
	rows, err := p.query(tx, i)
	if err != nil {
		p.Fatalf("%s, %s: %s: %v", p.name, when, p.statements[i].name, err)
	}
	defer func() { must(p.T, rows.Close()) }()
	for rows.Next() { // to the end
	}
	must(p.T, rows.Err())
}

func (p *planner) query(tx *sqlx.Tx, i int) (*sql.Rows, error) {
	if p.prepared == nil {
		return tx.QueryContext(p.Context(), p.statements[i].text, p.statements[i].args...)
	}
	return p.prepared[i].QueryContext(p.Context(), p.statements[i].args...) // on the session of tx
}

func (p *planner) read(tx *sqlx.Tx) (n int) {
	p.Helper()
	must(p.T, tx.GetContext(p.Context(), &n, p.counter))
	return n
}

// A server keeps the plan of a prepared statement, and plans by statistics that may be old, or that it has never
// made. Whatever they are, a statement for rows that are named does not read the others: a heartbeat of one lease
// would cost as much as the table is large.
func TestPlans_PostgreSQL(t *testing.T) {
	t.Parallel()
	const readByTransaction = "SELECT COALESCE(seq_tup_read + idx_tup_fetch, 0) FROM pg_stat_xact_user_tables WHERE relid = CAST('int_lock' AS regclass)"
	databases{server.Postgres: dbtest.Postgres, server.PostgresNewest: dbtest.PostgresNewest}.migrated(t, func(t *testing.T, db *dbtest.DB) {
		db.DB.MustExec("ALTER TABLE INT_LOCK SET (autovacuum_enabled = off)")
		db.DB.MustExec("VACUUM (ANALYZE) INT_LOCK")
		pools := map[string]*sqlx.DB{"pgx": db.OpenDSN(t, "pgx", db.DSN), "lib/pq": db.DB}
		var planners []*planner
		for driver, pool := range pools {
			planners = append(planners,
				newPlanner(t, driver, pool, sqltext.Postgres(), readByTransaction),
				newPlanner(t, driver+" of Open", pool, sqltext.Postgres().WithoutScans(), readByTransaction, "SET enable_seqscan = off"),
			)
		}
		kept := len(planners)
		for _, mode := range []string{"force_generic_plan", "force_custom_plan"} {
			planners = append(planners, newPlanner(t, mode, db.DB, sqltext.Postgres(), readByTransaction, "SET plan_cache_mode = "+mode))
		}
		for _, p := range planners[:kept] {
			p.execute(empty, 6) // then a plan is kept
		}
		const fill = "INSERT INTO INT_LOCK SELECT i, 'r', 'h' || i, now(), now() + INTERVAL '1 hour' FROM generate_series(%d, %d) AS i"
		db.DB.MustExec(fmt.Sprintf(fill, 1, 100))
		for _, p := range planners[:kept] {
			p.execute("a hundred rows", 1)
		}
		db.DB.MustExec(fmt.Sprintf(fill, 101, plannedRows))
		for _, state := range []struct{ when, statement string }{
			{"analysed while empty", "SELECT 1"}, // first: a change of the statistics ends the plans that are kept
			{"never analysed", "UPDATE pg_class SET reltuples = -1, relpages = 0 WHERE oid = CAST('int_lock' AS regclass)"},
			{"analysed with 100 rows", "UPDATE pg_class SET reltuples = 100, relpages = 2 WHERE oid = CAST('int_lock' AS regclass)"},
			{"analysed while all were dead", "UPDATE pg_class SET reltuples = 0, relpages = 3000 WHERE oid = CAST('int_lock' AS regclass)"},
			{"analysed just now", "ANALYZE INT_LOCK"},
		} {
			db.DB.MustExec(state.statement)
			for _, p := range planners {
				p.execute(state.when, 1)
			}
		}
	})
}

// The statements that look for the newest version of a row read the index from its end, and sort nothing, whatever the server
// knows of the table.
func TestPlans_NewestFirst(t *testing.T) {
	t.Parallel()
	databases{server.Postgres: dbtest.Postgres, server.PostgresNewest: dbtest.PostgresNewest}.migrated(t, func(t *testing.T, db *dbtest.DB) {
		session := check.Value(db.DB.Connx(t.Context()))(t)
		defer func() { must(t, session.Close()) }()
		must(t, check.ErrorOf(session.ExecContext(t.Context(), "SET enable_seqscan = off")))
		explain := func(when string) {
			for _, s := range plannedStatements(t, sqltext.Postgres().WithoutScans()) {
				if !strings.Contains(s.text, "ORDER BY LOCK_KEY DESC") {
					continue
				}
				var plan []string
				must(t, session.SelectContext(t.Context(), &plan, "EXPLAIN "+s.text, s.args...))
				text := strings.Join(plan, "\n")
				if !strings.Contains(text, "Index Scan Backward") || strings.Contains(text, "Sort") || strings.Contains(text, "Seq Scan") {
					t.Errorf("%s: %s: %s", when, s.name, text)
				}
			}
		}
		explain(empty)
		db.DB.MustExec("ANALYZE INT_LOCK")
		explain("analysed while empty")
		db.DB.MustExec("INSERT INTO INT_LOCK SELECT i, 'r', 'h' || i, now(), now() FROM generate_series(1, 20) AS i")
		db.DB.MustExec("ANALYZE INT_LOCK")
		explain("analysed with twenty rows")
		db.DB.MustExec("INSERT INTO INT_LOCK SELECT i, 'r', 'h' || i, now(), now() FROM generate_series(21, 20000) AS i")
		explain("analysed before")
		db.DB.MustExec("ANALYZE INT_LOCK")
		explain("analysed just now")
	})
}

func TestPlans_MySQL(t *testing.T) {
	t.Parallel()
	const readBySession = "SELECT SUM(CAST(VARIABLE_VALUE AS SIGNED)) FROM /*M! information_schema *//*!80000 performance_schema */.session_status" +
		" WHERE VARIABLE_NAME IN ('Handler_read_first', 'Handler_read_key', 'Handler_read_next', 'Handler_read_prev', 'Handler_read_rnd_next')"
	mysqls.migrated(t, func(t *testing.T, db *dbtest.DB) {
		db.DB.MustExec("ALTER TABLE INT_LOCK STATS_PERSISTENT = 1, STATS_AUTO_RECALC = 0")
		db.DB.MustExec("ANALYZE TABLE INT_LOCK")
		d := sqltext.MySQL()
		if db.Server == server.MySQL {
			d = d.WithSequence() // of MariaDB
		}
		config := check.Value(mysql.ParseDSN(db.DSN))(t)
		config.InterpolateParams = true // MariaDB takes a long list of values, which no parameter is among, for a table
		inText := newPlanner(t, "in the text", db.OpenDSN(t, db.Driver, config.FormatDSN()), d, readBySession)
		inText.prepared = nil
		planners := []*planner{inText, newPlanner(t, "prepared", db.DB, d, readBySession)}
		execute := func(when string) {
			for _, p := range planners {
				p.execute(when, 1)
			}
		}
		execute(empty)
		numbers := "(SELECT 0 AS n" + strings.Repeat(" UNION ALL SELECT %d", 9) + ")"
		numbers = fmt.Sprintf(numbers, 1, 2, 3, 4, 5, 6, 7, 8, 9)
		db.DB.MustExec("INSERT INTO INT_LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER)" +
			" SELECT i, 'r', CONCAT('h', i), UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 1 HOUR FROM (SELECT 1 + a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n + 100000 * f.n AS i FROM " +
			numbers + " a, " + numbers + " b, " + numbers + " c, " + numbers + " d, " + numbers + " e, (SELECT 0 AS n UNION ALL SELECT 1) f) AS numbers")
		execute("analysed while empty")
		db.DB.MustExec("ANALYZE TABLE INT_LOCK")
		execute("analysed just now")
	})
}

// SQLite has no count of rows read, and says of a plan what it scans. It knows of the table what ANALYZE has found,
// if it was ever run. If that was a hundred rows, nothing keeps SQLite from a scan until ANALYZE is run again: it has
// no hint that would fit a key without a name.
func TestPlans_SQLite(t *testing.T) {
	t.Parallel()
	check.Long(t)
	db := up(t, dbtest.SQLite)
	explain := func(when string) {
		t.Helper()
		for _, s := range plannedStatements(t, sqltext.Of(db.Dialect)) {
			var plan []struct {
				ID, Parent, NotUsed int
				Detail              string
			}
			must(t, db.DB.SelectContext(t.Context(), &plan, "EXPLAIN QUERY PLAN "+s.text, s.args...))
			for _, step := range plan {
				if strings.HasPrefix(step.Detail, "SCAN INT_LOCK") || strings.Contains(step.Detail, "(REGION=?)") {
					t.Errorf("%s: %s: %v", when, s.name, plan)
				}
			}
		}
	}
	explain("never analysed")
	filled := 0
	for _, rows := range []int{0, plannedRows} {
		db.DB.MustExec("WITH RECURSIVE n(i) AS (SELECT ? UNION ALL SELECT i + 1 FROM n WHERE i < ?) INSERT INTO INT_LOCK"+
			" SELECT i, 'r', 'h' || i, datetime(), datetime('now', '1 hour') FROM n WHERE i BETWEEN 1 AND ?", filled+1, rows, rows)
		filled = rows
		explain(fmt.Sprintf("%d rows, analysed before", rows))
		db.DB.MustExec("ANALYZE")
		explain(fmt.Sprintf("%d rows, analysed", rows))
	}
}
