package sqlitedriver

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/test/check"
)

// TestAnotherDirectory opens a file by a relative path, and changes the directory, where a file
// of that name is, too. Later connections of the pool are to the first file. It changes the
// directory of the process, so it runs alone.
func TestAnotherDirectory(t *testing.T) {
	for _, dsn := range []string{"sqlite:locks#%41.db", "locks#%41.db", "sqlite:./locks#%41.db", "file:locks%23%2541.db?mode=rwc", "file:./locks%23%2541.db"} {
		first, other := t.TempDir(), t.TempDir()
		for _, dir := range []string{other, first} {
			check.Must(t, os.WriteFile(filepath.Join(dir, "locks#%41.db"), nil, 0o600))
		}
		t.Chdir(first)
		target := check.Value(Parse(dsn))(t)
		db := sql.OpenDB(check.Value(target.Connector(target.Source, session.Settings{}))(t))
		t.Chdir(other)
		var file string
		check.Must(t, db.QueryRowContext(t.Context(), "SELECT file FROM pragma_database_list").Scan(&file))
		check.Must(t, db.Close())
		if want := check.Value(filepath.EvalSymlinks(first))(t); file != filepath.Join(want, "locks#%41.db") {
			t.Errorf("%s is %s in the other directory", dsn, file)
		}
	}
}
