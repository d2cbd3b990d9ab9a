package dbtest

import (
	"io"
	"os"
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
)

// RunExample runs the example of a package, which finds the DSN of db in DATABASE_URL, and checks what it prints. go
// test would run it without a server, too.
func (db *DB) RunExample(t *testing.T, example func(), want string) {
	t.Helper()
	t.Setenv("DATABASE_URL", db.DSN)
	read, write, err := os.Pipe()
	check.Must(t, err)
	stdout := os.Stdout
	os.Stdout = write // the tests of these packages run one after the other
	example()
	os.Stdout = stdout
	check.Must(t, write.Close())
	got, err := io.ReadAll(read)
	if err != nil || string(got) != want {
		t.Errorf("the example printed %q (error %v), want %q", got, err, want)
	}
}
