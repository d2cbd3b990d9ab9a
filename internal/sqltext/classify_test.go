package sqltext_test

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"

	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
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

// resetError returns the system's error of a connection that the other end has reset. Each system has another one.
func resetError(t *testing.T) error {
	t.Helper()
	listener := check.Value(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	client := check.Value(new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String()))(t)
	defer client.Close()
	server := check.Value(listener.Accept())(t)
	check.Must(t, server.(*net.TCPConn).SetLinger(0)) //nolint:forcetypeassert // it is of a TCP listener
	check.Must(t, server.Close())
	return check.ErrorOf(client.Read(make([]byte, 1)))
}

func TestClassify(t *testing.T) {
	t.Parallel()
	pg, my, lite := sqltext.Postgres(), sqltext.MySQL(), sqltext.SQLite()
	for _, test := range []struct {
		dialect sqltext.Dialect
		err     error
		want    sqltext.Class
	}{
		{pg, &pq.Error{Code: "40001"}, sqltext.Transient},
		{pg, &pgconn.PgError{Code: "40P01"}, sqltext.Transient},
		{pg, &pgconn.PgError{Code: "55P03"}, sqltext.Blocked},
		{pg, &pq.Error{Code: "25006"}, sqltext.ReadOnly},
		{pg, &pq.Error{Code: "0A000", Message: "cannot use serializable mode in a hot standby"}, sqltext.ReadOnly},
		{pg, &pq.Error{Code: "0A000", Message: "cached plan must not change result type", Routine: "RevalidateCachedQuery"}, sqltext.OldPlan},
		{pg, &pgconn.PgError{Code: "0A000", Routine: "RevalidateCachedQuery"}, sqltext.OldPlan},
		{pg, &pq.Error{Code: "0A000", Message: "another feature is not supported"}, sqltext.Unknown},
		{pg, &pq.Error{Code: "42P01"}, sqltext.Schema},
		{pg, &pgconn.PgError{Code: "42703"}, sqltext.Schema},
		{pg, &pq.Error{Code: "23502"}, sqltext.Schema},
		{pg, &pq.Error{Code: "23502", Message: `null value in column "expired_after" of relation "int_lock"`}, sqltext.OtherLayout},
		{pg, &pgconn.PgError{Code: "42702", Message: `column reference "expired_after" is ambiguous`}, sqltext.OtherLayout},
		{pg, &pgconn.PgError{Code: "42703", Message: `column "expired_after" does not exist`}, sqltext.OtherLayout},
		{pg, &pq.Error{Code: "57P01"}, sqltext.Closed},
		{pg, &pgconn.PgError{Code: "57P05"}, sqltext.Closed},
		{pg, &pgconn.PgError{Code: "25P03"}, sqltext.Closed},
		{pg, &pgconn.PgError{Code: "25P04"}, sqltext.Closed},
		{pg, &pq.Error{Code: "57014"}, sqltext.Blocked},
		{pg, io.ErrUnexpectedEOF, sqltext.Closed},
		{pg, fmt.Errorf("receive: %w", pgconn.ErrConnClosed), sqltext.Closed},
		{my, driver.ErrBadConn, sqltext.Closed},
		{my, mysql.ErrInvalidConn, sqltext.Closed},
		{my, mysql.ErrBusyBuffer, sqltext.Closed},
		{my, errors.New("bad connection"), sqltext.Closed}, // go-sql-driver's, which it does not export
		{my, mysql.ErrMalformPkt, sqltext.Closed},
		{my, mysql.ErrPktTooLarge, sqltext.TooLarge},
		{my, &mysql.MySQLError{Number: 1153}, sqltext.TooLarge},
		{my, &mysql.MySQLError{Number: 1390}, sqltext.TooLarge},
		{sqltext.TiDB(), &mysql.MySQLError{Number: 8004}, sqltext.TooLarge},
		{my, mysql.ErrPktSync, sqltext.Closed},
		{my, mysql.ErrPktSyncMul, sqltext.Closed},
		{my, errors.New("a trigger says: bad connection"), sqltext.Unknown},
		{pg, errors.New("pq: unexpected Parse response 'D'"), sqltext.Closed},
		{pg, fmt.Errorf("failed to connect: %w", io.EOF), sqltext.Closed},
		{my, resetError(t), sqltext.Closed},
		{my, &mysql.MySQLError{Number: 1927}, sqltext.Closed},
		{my, &mysql.MySQLError{Number: 1213}, sqltext.Transient},
		{my, &mysql.MySQLError{Number: 1205}, sqltext.Blocked},
		{my, &mysql.MySQLError{Number: 1317}, sqltext.Blocked},
		{my, &mysql.MySQLError{Number: 1969}, sqltext.Blocked},
		{my, &mysql.MySQLError{Number: 3024}, sqltext.Blocked},
		{my, &mysql.MySQLError{Number: 3572}, sqltext.Blocked},
		{my, &mysql.MySQLError{Number: 1180}, sqltext.Transient},
		{my, &mysql.MySQLError{Number: 3101}, sqltext.Transient},
		{my, &mysql.MySQLError{Number: 1568}, sqltext.Stuck},
		{my, &mysql.MySQLError{Number: 1047}, sqltext.Unknown},
		{my, &mysql.MySQLError{Number: 1020}, sqltext.Transient},
		{my, &mysql.MySQLError{Number: 1290}, sqltext.ReadOnly},
		{my, &mysql.MySQLError{Number: 1792}, sqltext.ReadOnly},
		{my, &mysql.MySQLError{Number: 1146}, sqltext.Schema},
		{my, &mysql.MySQLError{Number: 1364}, sqltext.Schema},
		{my, &mysql.MySQLError{Number: 1364, Message: "Field 'EXPIRED_AFTER' doesn't have a default value"}, sqltext.OtherLayout},
		{my, &mysql.MySQLError{Number: 1052, Message: "Column 'EXPIRED_AFTER' in WHERE is ambiguous"}, sqltext.OtherLayout},
		{my, &mysql.MySQLError{Number: 1045}, sqltext.Unknown},
		{sqltext.TiDB(), &mysql.MySQLError{Number: 9007}, sqltext.Transient},
		{sqltext.TiDB(), &mysql.MySQLError{Number: 1105, Message: "pessimistic lock retry limit reached"}, sqltext.Transient},
		{sqltext.TiDB(), &mysql.MySQLError{Number: 1105, Message: "line 1 column 9"}, sqltext.Unknown},
		{sqltext.TiDB(), &mysql.MySQLError{Number: 3572}, sqltext.Blocked},
		{lite, &sqliteError{5, "database is locked"}, sqltext.Transient},
		{lite, &sqliteError{261, "busy in recovery"}, sqltext.Transient},
		{lite, &sqliteError{6, "table is locked"}, sqltext.Transient},
		{lite, cgoError{5}, sqltext.Transient},
		{lite, &sqliteError{8, "readonly"}, sqltext.ReadOnly},
		{lite, &sqliteError{1, "SQL logic error: no such table: INT_LOCK"}, sqltext.Schema},
		{lite, &sqliteError{1, "near SELEC"}, sqltext.Unknown},
		{lite, &sqliteError{1, "ambiguous column name: EXPIRED_AFTER"}, sqltext.OtherLayout},
		{lite, &sqliteError{1299, "NOT NULL constraint failed: INT_LOCK.EXPIRED_AFTER"}, sqltext.OtherLayout},
		{lite, &sqliteError{1299, "NOT NULL constraint failed"}, sqltext.Schema},
		{lite, &sqliteError{1555, "UNIQUE constraint failed"}, sqltext.Refused},
		{pg, &pq.Error{Code: "23514"}, sqltext.Refused},
		{pg, &pq.Error{Code: "23505", Detail: "Key (lock_key)=(k) already exists."}, sqltext.Refused},
		{pg, &pq.Error{Code: "23505", Detail: "Schlüssel »(lock_key, region)=(k, DEFAULT)« existiert bereits."}, sqltext.Transient},
		{pg, &pgconn.PgError{Code: "23505", Detail: "Key (lock_key, region)=(k, DEFAULT) already exists."}, sqltext.Transient},
		{pg, &pgconn.PgError{Code: "P0001"}, sqltext.Refused},
		{pg, &pq.Error{Code: "21000"}, sqltext.Repeated},
		{pg, &pq.Error{Code: "42P10"}, sqltext.NoKey},
		{pg, &pgconn.PgError{Code: "42501", Message: `new row violates row-level security policy for table "int_lock"`}, sqltext.Refused},
		{pg, &pq.Error{Code: "42501", Message: "permission denied for table int_lock"}, sqltext.Unknown},
		{my, &mysql.MySQLError{Number: 3819}, sqltext.Refused},
		{my, &mysql.MySQLError{Number: 4025}, sqltext.Refused},
		{my, &mysql.MySQLError{Number: 1176}, sqltext.NoKey},
	} {
		for _, err := range []error{test.err, fmt.Errorf("op: %w", test.err), errors.Join(errors.New("other"), test.err)} {
			if got := test.dialect.Classify(err); got != test.want {
				t.Errorf("%s: %v: %v, want %v", test.dialect.Name, err, got, test.want)
			}
		}
	}
	for _, d := range []sqltext.Dialect{pg, my, lite} {
		for _, err := range []error{nil, errors.New("Error 1213 (40001): numbers in the text do not count"), errors.Join()} {
			if got := d.Classify(err); got != sqltext.Unknown {
				t.Errorf("%s: %v: %v", d.Name, err, got)
			}
		}
	}
}
