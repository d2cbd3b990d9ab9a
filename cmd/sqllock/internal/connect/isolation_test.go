package connect

import (
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/test/check"
)

// Where several members of a replication group accept writes the command acquires in READ COMMITTED.
func TestRepositoryWhereSerializableIsRefused(t *testing.T) {
	t.Parallel()
	db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherRegexp))
	check.Must(t, err)
	defer db.Close()
	for range 2 { // the second time with another isolation
		columns := sqlmock.NewRows([]string{"version", "session", "table", "charset", "collation", "LOCK_KEY", "REGION", "CLIENT_ID", "CREATED_DATE", "EXPIRED_AFTER"})
		mock.ExpectQuery("SELECT server.version").WillReturnRows(columns.AddRow("9.7.4", "", "", "", "", nil, nil, nil, nil, nil))
		mock.ExpectQuery("INT_LOCK_FENCE").WillReturnRows(sqlmock.NewRows([]string{"FENCE"}))
		mock.ExpectQuery("replication_group_members").WillReturnRows(sqlmock.NewRows([]string{"name", "value"}).
			AddRow("group_replication_group_name", "aaaa").AddRow("group_replication_enforce_update_everywhere_checks", "ON").AddRow("member_state", "ONLINE"))
	}
	c := &Connection{DB: sqlx.NewDb(db, "sqlmock"), Dialect: dialect.MySQL(), pools: new(session.Pools)}
	if _, err := (&Flags{Prefix: "INT_", Region: "DEFAULT"}).Repository(t.Context(), c, sqllock.RepositoryOptions{}); err != nil {
		t.Fatal(err)
	}
	check.Is(t, mock.ExpectationsWereMet(), nil)
}
