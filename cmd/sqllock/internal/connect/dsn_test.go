package connect

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/session/mysqldriver"
	"github.com/sqllock/sqllock/internal/session/pgxdriver"
	"github.com/sqllock/sqllock/internal/session/pqdriver"
	"github.com/sqllock/sqllock/internal/session/sqlitedriver"
	"github.com/sqllock/sqllock/internal/test/check"
)

func TestParseDSN(t *testing.T) {
	t.Setenv("PGHOST", "")
	tests := []struct {
		dsn            string
		driver, source string
		redacted       string
	}{
		{"postgres://u:pw@h:6432/db?sslmode=disable", "pgx", "postgres://u:pw@h:6432/db?sslmode=disable", "postgres://u@h:6432/db"},
		{"postgresql://u:pw@h/db", "pgx", "postgres://u:pw@h/db", "postgres://u@h:5432/db"},
		{"POSTGRES://u:pw@h/db", "pgx", "postgres://u:pw@h/db", "postgres://u@h:5432/db"},
		{"postgres://u:p%2Fw%40@[::1]/db", "pgx", "postgres://u:p%2Fw%40@[::1]/db", "postgres://u@[::1]:5432/db"},
		{"host=h port=6432 user=u password='p w' dbname=db", "pgx", "host=h port=6432 user=u password='p w' dbname=db", "postgres://u@h:6432/db"},
		{"postgres://u:pw@h:1,i:2/db?channel_binding=prefer", "pgx", "postgres://u:pw@h:1,i:2/db?channel_binding=prefer&target_session_attrs=primary", "postgres://u@h:1/db"},
		{"host=h,i user=u dbname=db", "pgx", "target_session_attrs=primary host=h,i user=u dbname=db", "postgres://u@h:5432/db"},
		{"postgres://u@h,i/db?target_session_attrs=any", "pgx", "postgres://u@h,i/db?target_session_attrs=any", "postgres://u@h:5432/db"},
		{"mysql://u:pw@h:3307/db", "mysql", "u:pw@tcp(h:3307)/db", "mysql://u@h:3307/db"},
		{"mariadb://u:pw@h/db", "mysql", "u:pw@tcp(h:3306)/db", "mysql://u@h:3306/db"},
		{"tidb://u:pw@h:4000/db", "mysql", "u:pw@tcp(h:4000)/db", "tidb://u@h:4000/db"},
		{"mysql://u:p%2Fw%40@[::1]/db", "mysql", "u:p/w@@tcp([::1]:3306)/db", "mysql://u@[::1]:3306/db"},
		{"mysql://u:pw@h/db?timeout=3s&clientFoundRows=true", "mysql", "u:pw@tcp(h:3306)/db?timeout=3s&clientFoundRows=true", "mysql://u@h:3306/db"},
		{"mysql://u:pw@tcp(h:3307)/db", "mysql", "u:pw@tcp(h:3307)/db", "mysql://u@h:3307/db"},
		{"u:pw@tcp(h:3307)/db?timeout=3s", "mysql", "u:pw@tcp(h:3307)/db?timeout=3s", "mysql://u@h:3307/db"},
		{"u:p@/w@tcp(h)/db", "mysql", "u:p@/w@tcp(h)/db", "mysql://u@h:3306/db"},
		{"u@unix(/run/mysqld.sock)/db", "mysql", "u@unix(/run/mysqld.sock)/db", "mysql://u@unix(/run/mysqld.sock)/db"},
		{"postgres:///db?host=/run/pg&user=u", "pgx", "postgres:///db?host=/run/pg&user=u", "postgres://u@/db?host=/run/pg"},
		{"sqlite:locks.db", "sqlite", "file:locks.db?mode=rw", "sqlite:locks.db"},
		{"sqlite:///var/lib/l%#.db", "sqlite", "file:/var/lib/l%25%23.db?mode=rw", "sqlite:/var/lib/l%#.db"},
		{"sqlite:////var/lib/l.db", "sqlite", "file:////var/lib/l.db?mode=rw", "sqlite://var/lib/l.db"},
		{"sqlite:a b.db", "sqlite", "file:a%20b.db?mode=rw", "sqlite:a b.db"},
		{"file:/x.db?mode=ro", "sqlite", "file:/x.db?mode=ro", "file:/x.db"},
		{"file:/x.db?_pragma=key('pw')", "sqlite", "file:/x.db?mode=rw", "file:/x.db"},
	}
	for _, test := range tests {
		t.Run(test.dsn, func(t *testing.T) {
			got := check.Value(ParseDSN(test.dsn))(t)
			source := withoutPragmas(t, got.Source)
			if diff := cmp.Diff([]string{test.driver, test.source, test.redacted}, []string{got.Driver, source, got.Redacted}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// withoutPragmas removes the pragmas from a source of SQLite.
func withoutPragmas(t *testing.T, source string) string {
	t.Helper()
	uri, query, found := strings.Cut(source, "?")
	if !strings.HasPrefix(source, "file:") || !found {
		return source
	}
	values := check.Value(url.ParseQuery(query))(t)
	delete(values, "_pragma")
	return uri + "?" + values.Encode()
}

func TestParseDSNRejects(t *testing.T) {
	for dsn, why := range map[string]string{
		"nonsense":                           "known forms",
		"oracle://u:pw@h/db":                 "does not support oracle://",
		"postgres://u:pw@h:port/db":          "is not a URL like postgres://",
		"postgres://u:p/w@h/db":              "written %2F",
		"postgres://u:1/w@h/db":              "written %2F",
		"postgres://u:1#w@h/db":              "written %2F",
		"postgres://u:1?w@h/db":              "written %2F",
		"postgres://h/db?sslmode=off":        "invalid parameters after the ?: see sslmode: pgx cannot parse them",
		"postgres://h/db?password=x&port=no": "invalid parameters after the ?",
		"host=h password=p w":                "is not like host=",
		"mysql://u:pw@h":                     "names no database",
		"mysql://u:p/w@h/db":                 "written %2F",
		"mysql://u:pw@h/db?timeout=3":        "invalid parameters after the ?: see timeout: time: missing unit",
		"u:pw@tcp(h)/db?timeout=3":           "invalid parameters after the ?: see timeout: time: missing unit",
		"mysql:///db":                        "is not a URL like mysql://",
		"u:pw@tcp(h/db":                      "is not like user:password@tcp(",
		"u:pw@h/db":                          "is not like user:password@tcp(",
		"u:p/w@tcp(h:1)":                     "is not like user:password@tcp(",
		"sqlite:":                            "names no file",
		"sqlite::memory:":                    "in memory",
		"file::memory:?cache=shared":         "in memory",
		"file:x?mode=memory":                 "in memory",
		"sqlite:x?mode=ro":                   "file:/path?name=value",
		"sqlite:x\ny":                        "line break",
	} {
		t.Run(dsn, func(t *testing.T) {
			_, err := ParseDSN(dsn)
			if err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("error %v, want one with %q", err, why)
			}
			check.Equal(t, "exit code", exit.CodeOf(err), exit.Usage)
			if err != nil && strings.Contains(err.Error(), "pw") {
				t.Errorf("the error contains the password: %v", err)
			}
		})
	}
}

// passwordForms are DSNs with a password in place of §, those that end with %
// percent-encoded.
var passwordForms = []string{
	"postgres://u:§@h/db", "postgresql://u:§@h:5432", "postgres://h/db?user=u&password=§",
	"mysql://u:§@h/db", "mariadb://u:§@h:3306/db?timeout=1s", "mysql://u:§@tcp(h:1)/db",
	"u:§@tcp(h:3306)/db", "u:§@tcp(h:3306)/db?x=y", "u:§@unix(/s)/db", "u:§@tcp(h:3306", "u:§@h",
	"host=h user=u password='§' dbname=db", "host=h user=u password=§", "password=§ host=h",
	"oracle://u:§@h/db", "u:§@/db",
}

// parsers are that of the command and those of the drivers, which also read what the command gives to another one.
var parsers = map[string]func(string) (session.Target, error){
	"command": ParseDSN, "pgx": pgxdriver.Parse, "pq": pqdriver.Parse, "mysql": mysqldriver.Parse, "sqlite": sqlitedriver.Parse,
}

// FuzzPasswordStaysSecret puts passwords of all kinds into DSNs of all forms, encoded
// and not.
func FuzzPasswordStaysSecret(f *testing.F) {
	for i := range passwordForms {
		for _, middle := range []string{"", "/", "?", "#", "@", ":", "%zz", " ", "'", "\\", "=", "@h/", "@/", "/1@", "(", ")/", "&x="} {
			f.Add(i, middle)
		}
	}
	f.Fuzz(func(t *testing.T, form int, middle string) {
		const secret = "S3cR3t" // both ends of the password; neither may appear
		password := secret + middle + secret
		dsn := passwordForms[uint(form)%uint(len(passwordForms))]
		for _, written := range []string{password, url.QueryEscape(password), url.PathEscape(password)} {
			dsn := strings.ReplaceAll(dsn, "§", written)
			for name, parse := range parsers {
				got, err := parse(dsn)
				if err != nil && strings.Contains(err.Error(), secret) {
					t.Errorf("%s: the error for %q contains the password: %v", name, dsn, err)
				}
				if strings.Contains(got.Redacted, secret) && !strings.HasPrefix(got.Redacted, "sqlite:") { // a path has no password
					t.Errorf("%s: the redacted form of %q contains the password: %s", name, dsn, got.Redacted)
				}
			}
		}
	})
}

// FuzzParseDSN checks that every DSN is either rejected as bad input or parsed. Then a pool can be
// made, and what the driver gets is a DSN of the same database.
func FuzzParseDSN(f *testing.F) {
	for _, form := range passwordForms {
		f.Add(form)
	}
	for _, dsn := range []string{"sqlite:x", "sqlite:///", "file:x?mode=ro", "file:%zz", "postgres://%zz", "mysql://[::1", "=", "a=\\", "host=", "host=h password=", "\x00"} {
		f.Add(dsn)
	}
	f.Fuzz(func(t *testing.T, dsn string) {
		for name, parse := range parsers {
			got, err := parse(dsn)
			if err != nil {
				if name == "command" && exit.CodeOf(err) != exit.Usage || strings.ContainsAny(exit.Text(err), "\n\x1b") {
					t.Errorf("%s: %q: exit code %d for %q", name, dsn, exit.CodeOf(err), err)
				}
				continue
			}
			if got.Driver == "" || got.Source == "" || got.Redacted == "" || got.Dialect == (dialect.Dialect{}) {
				t.Errorf("%s: %q: incomplete target %+v", name, dsn, got)
			}
			if _, err := got.Connector(got.Source, session.Settings{Serializable: true, Pooled: true}); err != nil {
				t.Errorf("%s: %q: the driver does not take %q: %v", name, dsn, got.Source, err)
			}
			again, err := parse(got.Source)
			if err != nil || again.Driver != got.Driver || got.Driver != "sqlite" && (again.Redacted != got.Redacted || again.Source != got.Source) {
				t.Errorf("%s: %q becomes %q at %s, and that %q at %s, %v", name, dsn, got.Source, got.Redacted, again.Source, again.Redacted, err)
			}
		}
	})
}
