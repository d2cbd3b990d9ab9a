package probe

import (
	"os"
	"strings"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
)

// testdata/servers.tsv has what servers report of themselves, as their documentation or their users show it.
func TestEngineOf(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for line := range strings.Lines(string(check.Value(os.ReadFile("testdata/servers.tsv"))(t))) {
		name, server, _ := strings.Cut(strings.TrimSpace(line), "\t")
		check.Equal(t, server, EngineOf(server).Name, name)
		seen[name] = true
	}
	for _, e := range engines() {
		if !seen[e.Name] {
			t.Errorf("no server is %s", e.Name)
		}
		if (e.Refusal == "") != (e.Oldest != "") {
			t.Errorf("%s: it is refused, or has an oldest version", e.Name)
		}
	}
}

// No table is created on a server that is not supported, or that needs another dialect.
func TestCheckServer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		server     string
		unverified bool
		tidb       bool        // the dialect
		kind       dbcall.Kind // Failed for none
	}{
		"a MySQL":                    {server: "9.7.4 MySQL Community Server - GPL"},
		"a TiDB":                     {server: "8.0.11-TiDB-v8.5.0", kind: dbcall.Unsupported},
		"a TiDB that is permitted":   {server: "8.0.11-TiDB-v8.5.0", unverified: true},
		"a TiDB with its dialect":    {server: "8.0.11-TiDB-v8.5.0", tidb: true},
		"a MySQL taken for a TiDB":   {server: "9.7.4 MySQL Community Server - GPL", tidb: true, unverified: true, kind: dbcall.WrongDialect},
		"a PostgreSQL, in any case":  {server: "PostgreSQL 18.1", unverified: true, kind: dbcall.WrongDialect},
		"one that does not say that": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mocked, mock, err := sqlmock.New()
			check.Must(t, err)
			t.Cleanup(func() { _ = mocked.Close() }) // the mock did not expect it
			if test.server != "" {
				mock.ExpectQuery("SELECT CONCAT_WS").WillReturnRows(sqlmock.NewRows([]string{"version"}).AddRow(test.server))
			}
			d := sqltext.MySQL()
			if test.tidb {
				d = sqltext.TiDB()
			}
			err = CheckServer(t.Context(), mocked, d, dialect.DefaultPrefix, test.unverified)
			if test.kind == dbcall.Failed && err != nil || test.kind != dbcall.Failed && !dbcall.Is(err, test.kind) {
				t.Error(err)
			}
		})
	}
}
