package show

import (
	"bytes"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/internal/test/check"
)

// A refusal is an error of PostgreSQL.
type refusal struct{ code, text string }

func (r refusal) Error() string    { return r.text }
func (r refusal) SQLState() string { return r.code }

// A table of names that cannot be read is reported with the cause and the driver's text, as other errors of the database are.
func TestErrNoNames(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		cause error
		want  string
	}{
		{
			refusal{"42501", "ERROR: permission denied for table int_lock_name"},
			"sqllock: database error: the table of names cannot be read: the user lacks a right\n" +
				"try: sqllock migrate grants --to USER prints what to run; migrations need more than locks\n" +
				"driver: ERROR: permission denied for table int_lock_name\n",
		},
		{refusal{"42P01", "no such table"}, "sqllock: database error: the table of names cannot be read: no such table\ntry: sqllock doctor\n"},
	} {
		err := errNoNames("read", test.cause)
		check.Is(t, err, sqllock.ErrDatabase, test.cause)
		var out bytes.Buffer
		exit.Report(&out, err, connect.Hint(err))
		check.Equal(t, "what is reported", out.String(), test.want)
		check.Equal(t, "exit code", exit.CodeOf(err), exit.Database)
	}
}
