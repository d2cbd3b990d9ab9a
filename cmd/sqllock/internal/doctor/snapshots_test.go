package doctor

import (
	"context"
	"database/sql"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
)

// A server of tests has other sessions, which come and go. The oldest snapshot is one of
// these, or what another test has left for a while, or that of the test. How old it is does
// not depend on the zone of the session that asks.
func TestTheOldestSnapshotIsNamed(t *testing.T) {
	t.Parallel()
	dbtest.Databases{"PostgreSQL": dbtest.Postgres, "MariaDB": dbtest.MySQL, "MySQL": dbtest.OracleMySQL}.Each(t, func(t *testing.T, db *dbtest.DB) {
		tx := check.Value(db.DB.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead}))(t)
		defer func() { check.Must(t, tx.Rollback()) }()
		check.Must(t, check.ErrorOf(tx.ExecContext(t.Context(), "CREATE TABLE THINGS (ID INT PRIMARY KEY)")))
		if db.Name == "mysql" { // which has committed
			check.Must(t, check.ErrorOf(tx.ExecContext(t.Context(), "START TRANSACTION WITH CONSISTENT SNAPSHOT")))
		}
		check.Must(t, check.ErrorOf(tx.ExecContext(t.Context(), "SELECT * FROM THINGS")))
		pool := db.DB
		if db.Name == "mysql" {
			pool = db.OpenDSN(t, db.Driver, db.With(t, map[string]string{"time_zone": "'+05:30'"}))
		}
		found := oldest(t, db, pool)
		if found.Seconds < 0 || found.Seconds > 3600 {
			t.Errorf("found %+v", found)
		}
	})
}

// A user of PostgreSQL without rights sees neither the types of other users' sessions nor their times.
func TestTheOldestSnapshotIsNamed_FewRights(t *testing.T) {
	t.Parallel()
	db := dbtest.Postgres(t)
	u := check.Value(url.Parse(db.DSN))(t)
	role := "few_" + u.Query().Get("search_path")
	db.DB.MustExecContext(t.Context(), "CREATE ROLE "+role+" LOGIN PASSWORD 'few'")
	t.Cleanup(func() { db.DB.MustExecContext(context.Background(), "DROP ROLE "+role) })
	u.User = url.UserPassword(role, "few")
	tx := check.Value(db.DB.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead}))(t)
	defer func() { check.Must(t, tx.Rollback()) }()
	check.Must(t, check.ErrorOf(tx.ExecContext(t.Context(), "SELECT 1 FROM pg_class")))
	oldest(t, db, db.OpenDSN(t, db.Driver, u.String()))
}

// oldest returns what is found over a pool. There must be something.
func oldest(t *testing.T, db *dbtest.DB, pool *sqlx.DB) snapshot {
	t.Helper()
	e := &examination{Connection: &connect.Connection{DB: pool, Dialect: db.Dialect}}
	found := check.Value(e.snapshots(t.Context()))(t)
	if len(found) == 0 || !regexp.MustCompile(`^(session|prepared transaction|replication slot) .`).MatchString(found[0].Name) {
		t.Fatalf("found %+v", found)
	}
	return found[0]
}

// TestOldSnapshotBehindAnother has a slot, whose time is not known, come before a session that is old.
func TestOldSnapshotBehindAnother(t *testing.T) {
	t.Parallel()
	db, mock, err := sqlmock.New()
	check.Must(t, err)
	defer func() { _ = db.Close() }() // the mock did not expect it
	mock.ExpectQuery("ORDER BY behind DESC, seconds DESC$").WillReturnRows(sqlmock.NewRows([]string{"name", "who", "seconds", "behind"}).
		AddRow("replication slot a", "active", 0, 500).AddRow("session 4711", "report", 600, 400))
	e := &examination{Connection: &connect.Connection{DB: sqlx.NewDb(db, "sqlmock"), Dialect: dialect.Postgres()}}
	findings := e.checkSnapshots(t.Context())
	if len(findings) != 1 || !strings.HasPrefix(findings[0].Text, "session 4711 (report) has a snapshot that is 10m0s old") {
		t.Errorf("found %+v", findings)
	}
}

func TestSnapshotFinding(t *testing.T) {
	t.Parallel()
	for text, s := range map[string]snapshot{
		"session 4711 (report, psql, 10.0.0.7, idle in transaction) has a snapshot that is 20m0s old": {"session 4711", "report, psql, 10.0.0.7, idle in transaction", 1200, 812_345},
		"replication slot old (inactive) has a snapshot that is 812345 transactions old":              {"replication slot old", "inactive", 0, 812_345},
	} {
		if f := s.finding(); !s.isOld() || !strings.HasPrefix(f.Text, text) {
			t.Errorf("%v: %+v", s.isOld(), f)
		}
	}
	for _, young := range []snapshot{{"session 1", "app", 2, 5}, {"replication slot a", "active", 0, 90_000}} {
		if young.isOld() {
			t.Errorf("%+v is old", young)
		}
	}
}
