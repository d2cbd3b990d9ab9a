package dialect_test

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

// sqliteError has the shape of modernc.org/sqlite's, whose fields are private.
type sqliteError struct {
	code int
	text string
}

func (e *sqliteError) Error() string { return e.text }
func (e *sqliteError) Code() int     { return e.code }

// cgoError has the shape of mattn/go-sqlite3's.
type cgoError struct{ Code cgoNumber }

type cgoNumber int

func (e cgoError) Error() string { return "database is locked" }

func TestClassify(t *testing.T) {
	t.Parallel()
	pg, my, lite := dialect.Postgres(), dialect.MySQL(), dialect.SQLite()
	for _, test := range []struct {
		dialect dialect.Dialect
		err     error
		want    dialect.Class
	}{
		{pg, &pq.Error{Code: "40001"}, dialect.Transient},
		{pg, &pgconn.PgError{Code: "40P01"}, dialect.Transient},
		{pg, &pgconn.PgError{Code: "55P03"}, dialect.Blocked},
		{pg, &pq.Error{Code: "25006"}, dialect.ReadOnly},
		{pg, &pq.Error{Code: "0A000", Message: "cannot use serializable mode in a hot standby"}, dialect.ReadOnly},
		{pg, &pq.Error{Code: "0A000", Message: "cached plan must not change result type", Routine: "RevalidateCachedQuery"}, dialect.OldPlan},
		{pg, &pgconn.PgError{Code: "0A000", Routine: "RevalidateCachedQuery"}, dialect.OldPlan},
		{pg, &pq.Error{Code: "0A000", Message: "another feature is not supported"}, dialect.Unknown},
		{pg, &pq.Error{Code: "42P01"}, dialect.Schema},
		{pg, &pgconn.PgError{Code: "42703"}, dialect.Schema},
		{pg, &pq.Error{Code: "23502"}, dialect.Schema},
		{pg, &pq.Error{Code: "23502", Message: `null value in column "expired_after" of relation "int_lock"`}, dialect.OtherLayout},
		{pg, &pgconn.PgError{Code: "42702", Message: `column reference "expired_after" is ambiguous`}, dialect.OtherLayout},
		{pg, &pgconn.PgError{Code: "42703", Message: `column "expired_after" does not exist`}, dialect.OtherLayout},
		{pg, &pq.Error{Code: "57P01"}, dialect.Closed},
		{pg, &pgconn.PgError{Code: "57P05"}, dialect.Closed},
		{pg, &pgconn.PgError{Code: "25P03"}, dialect.Closed},
		{pg, &pgconn.PgError{Code: "25P04"}, dialect.Closed},
		{pg, &pq.Error{Code: "57014"}, dialect.Blocked},
		{pg, io.ErrUnexpectedEOF, dialect.Closed},
		{pg, fmt.Errorf("receive: %w", pgconn.ErrConnClosed), dialect.Closed},
		{my, driver.ErrBadConn, dialect.Closed},
		{my, mysql.ErrInvalidConn, dialect.Closed},
		{my, mysql.ErrBusyBuffer, dialect.Closed},
		{my, errors.New("bad connection"), dialect.Closed}, // go-sql-driver's, which it does not export
		{my, mysql.ErrMalformPkt, dialect.Closed},
		{my, mysql.ErrPktTooLarge, dialect.TooLarge},
		{my, &mysql.MySQLError{Number: 1153}, dialect.TooLarge},
		{my, &mysql.MySQLError{Number: 1390}, dialect.TooLarge},
		{dialect.TiDB(), &mysql.MySQLError{Number: 8004}, dialect.TooLarge},
		{my, mysql.ErrPktSync, dialect.Closed},
		{my, mysql.ErrPktSyncMul, dialect.Closed},
		{my, errors.New("a trigger says: bad connection"), dialect.Unknown},
		{pg, errors.New("pq: unexpected Parse response 'D'"), dialect.Closed},
		{pg, fmt.Errorf("failed to connect: %w", io.EOF), dialect.Closed},
		{my, &net.OpError{Op: "read", Err: syscall.ECONNRESET}, dialect.Closed},
		{my, &mysql.MySQLError{Number: 1927}, dialect.Closed},
		{my, &mysql.MySQLError{Number: 1213}, dialect.Transient},
		{my, &mysql.MySQLError{Number: 1205}, dialect.Blocked},
		{my, &mysql.MySQLError{Number: 1317}, dialect.Blocked},
		{my, &mysql.MySQLError{Number: 1969}, dialect.Blocked},
		{my, &mysql.MySQLError{Number: 3024}, dialect.Blocked},
		{my, &mysql.MySQLError{Number: 3572}, dialect.Blocked},
		{my, &mysql.MySQLError{Number: 1180}, dialect.Transient},
		{my, &mysql.MySQLError{Number: 3101}, dialect.Transient},
		{my, &mysql.MySQLError{Number: 1568}, dialect.Stuck},
		{my, &mysql.MySQLError{Number: 1047}, dialect.Unknown},
		{my, &mysql.MySQLError{Number: 1020}, dialect.Transient},
		{my, &mysql.MySQLError{Number: 1290}, dialect.ReadOnly},
		{my, &mysql.MySQLError{Number: 1792}, dialect.ReadOnly},
		{my, &mysql.MySQLError{Number: 1146}, dialect.Schema},
		{my, &mysql.MySQLError{Number: 1364}, dialect.Schema},
		{my, &mysql.MySQLError{Number: 1364, Message: "Field 'EXPIRED_AFTER' doesn't have a default value"}, dialect.OtherLayout},
		{my, &mysql.MySQLError{Number: 1052, Message: "Column 'EXPIRED_AFTER' in WHERE is ambiguous"}, dialect.OtherLayout},
		{my, &mysql.MySQLError{Number: 1045}, dialect.Unknown},
		{dialect.TiDB(), &mysql.MySQLError{Number: 9007}, dialect.Transient},
		{dialect.TiDB(), &mysql.MySQLError{Number: 1105, Message: "pessimistic lock retry limit reached"}, dialect.Transient},
		{dialect.TiDB(), &mysql.MySQLError{Number: 1105, Message: "line 1 column 9"}, dialect.Unknown},
		{dialect.TiDB(), &mysql.MySQLError{Number: 3572}, dialect.Blocked},
		{lite, &sqliteError{5, "database is locked"}, dialect.Transient},
		{lite, &sqliteError{261, "busy in recovery"}, dialect.Transient},
		{lite, &sqliteError{6, "table is locked"}, dialect.Transient},
		{lite, cgoError{5}, dialect.Transient},
		{lite, &sqliteError{8, "readonly"}, dialect.ReadOnly},
		{lite, &sqliteError{1, "SQL logic error: no such table: INT_LOCK"}, dialect.Schema},
		{lite, &sqliteError{1, "near SELEC"}, dialect.Unknown},
		{lite, &sqliteError{1, "ambiguous column name: EXPIRED_AFTER"}, dialect.OtherLayout},
		{lite, &sqliteError{1299, "NOT NULL constraint failed: INT_LOCK.EXPIRED_AFTER"}, dialect.OtherLayout},
		{lite, &sqliteError{1299, "NOT NULL constraint failed"}, dialect.Schema},
		{lite, &sqliteError{1555, "UNIQUE constraint failed"}, dialect.Refused},
		{pg, &pq.Error{Code: "23514"}, dialect.Refused},
		{pg, &pq.Error{Code: "23505", Detail: "Key (lock_key)=(k) already exists."}, dialect.Refused},
		{pg, &pq.Error{Code: "23505", Detail: "Schlüssel »(lock_key, region)=(k, DEFAULT)« existiert bereits."}, dialect.Transient},
		{pg, &pgconn.PgError{Code: "23505", Detail: "Key (lock_key, region)=(k, DEFAULT) already exists."}, dialect.Transient},
		{pg, &pgconn.PgError{Code: "P0001"}, dialect.Refused},
		{pg, &pq.Error{Code: "21000"}, dialect.Repeated},
		{pg, &pq.Error{Code: "42P10"}, dialect.NoKey},
		{pg, &pgconn.PgError{Code: "42501", Message: `new row violates row-level security policy for table "int_lock"`}, dialect.Refused},
		{pg, &pq.Error{Code: "42501", Message: "permission denied for table int_lock"}, dialect.Unknown},
		{my, &mysql.MySQLError{Number: 3819}, dialect.Refused},
		{my, &mysql.MySQLError{Number: 4025}, dialect.Refused},
		{my, &mysql.MySQLError{Number: 1176}, dialect.NoKey},
	} {
		for _, err := range []error{test.err, fmt.Errorf("op: %w", test.err), errors.Join(errors.New("other"), test.err)} {
			if got := test.dialect.Classify(err); got != test.want {
				t.Errorf("%s: %v: %v, want %v", test.dialect.Name, err, got, test.want)
			}
		}
	}
	for _, d := range []dialect.Dialect{pg, my, lite} {
		for _, err := range []error{nil, errors.New("Error 1213 (40001): numbers in the text do not count"), errors.Join()} {
			if got := d.Classify(err); got != dialect.Unknown {
				t.Errorf("%s: %v: %v", d.Name, err, got)
			}
		}
	}
}
