package migrations

import (
	"io"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
)

// TestFiles checks the package's assumptions about its files.
func TestFiles(t *testing.T) {
	t.Parallel()
	for name := range flavours {
		var found int
		entries, err := fs.ReadDir(embedded, name)
		check.Must(t, err)
		for _, entry := range entries {
			found++
			text, err := fs.ReadFile(embedded, path.Join(name, entry.Name()))
			check.Must(t, err)
			checkText(t, path.Join(name, entry.Name()), string(text))
		}
		if found != 2*latest {
			t.Errorf("%s: %d files, want %d up and as many down", name, found, latest)
		}
	}
}

func checkText(t *testing.T, name, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if isComment := strings.HasPrefix(line, "--"); strings.Contains(line, "--") != isComment {
			t.Errorf("%s: a comment after a statement: %s", name, line)
		} else if isComment && strings.Contains(line, ";") {
			t.Errorf("%s: a semicolon in a comment: %s", name, line)
		} else if strings.HasPrefix(line, "-- when") && !condition.MatchString(line) {
			t.Errorf("%s: an invalid condition: %s", name, line)
		}
	}
	if !strings.HasSuffix(text, ";\n") {
		t.Errorf("%s: no semicolon at the end", name)
	}
}

func TestPlaceholdersAreFilled(t *testing.T) {
	t.Parallel()
	for _, d := range []dialect.Dialect{dialect.Postgres(), dialect.MySQL(), dialect.SQLite()} {
		s, err := newSettings(d, &Options{Prefix: "billing.X_"})
		check.Must(t, err)
		source, err := newFiles(s)
		check.Must(t, err)
		for version := uint(1); version <= latest; version++ {
			for _, read := range []func(uint) (io.ReadCloser, string, error){source.ReadUp, source.ReadDown} {
				file, name, err := read(version)
				check.Must(t, err)
				text, err := io.ReadAll(file)
				check.Must(t, err)
				if strings.ContainsAny(string(text), "{}") || !strings.Contains(string(text), "billing.X_LOCK") {
					t.Errorf("%s %d %s: %s", d.Name, version, name, text)
				}
			}
		}
	}
}
