package migrations

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/fakedb"
)

// TestMySQLReleasesItsLock has a server whose locks outlive the session: whatever becomes of a migration, its last
// statement releases the lock that it has acquired.
func TestMySQLReleasesItsLock(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"migrated": nil, "failed": errors.New("a step failed")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent []string
			db := fakedb.OpenWith(func(text string) { sent = append(sent, text) })
			defer db.Close()
			s := check.Value(open(t.Context(), db, dialect.MySQL(), &Options{Prefix: "billing.X_"}))(t)
			check.Is(t, s.locked(t.Context(), func() error { return failure }), failure)
			acquired := slices.IndexFunc(sent, func(text string) bool { return strings.Contains(text, "GET_LOCK(") })
			want := strings.Replace(strings.TrimSuffix(sent[acquired], ", 1)")+")", "GET_LOCK(", "RELEASE_LOCK(", 1)
			check.Equal(t, "the last statement", sent[len(sent)-1], want)
			check.Equal(t, "sessions", db.Stats().OpenConnections, 0)
		})
	}
}

// TestMySQLRefusesALimit has the answer of Dolt, which knows no other value than 1.
func TestMySQLRefusesALimit(t *testing.T) {
	t.Parallel()
	db, server, err := sqlmock.New()
	check.Must(t, err)
	defer db.Close()
	server.MatchExpectationsInOrder(false)
	server.ExpectExec("SET SESSION innodb_lock_wait_timeout = 5").WillReturnError(errors.New("Error 1105: it can't be set"))
	for _, text := range []string{"autocommit", "SESSION lock_wait_timeout", "sql_select_limit = DEFAULT", "sql_select_limit = 9", "RELEASE_LOCK"} {
		server.ExpectExec(text).WillReturnResult(sqlmock.NewResult(0, 0))
	}
	server.ExpectQuery("GET_LOCK").WillReturnRows(sqlmock.NewRows([]string{"got"}).AddRow(1))
	server.ExpectClose()
	s := check.Value(open(t.Context(), db, dialect.MySQL(), nil))(t)
	check.Must(t, s.locked(t.Context(), func() error { return nil }))
	check.Must(t, server.ExpectationsWereMet())
}
