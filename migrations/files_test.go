package migrations

import (
	"io"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
)

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
