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
		s := check.Value(newSettings(d, &Options{Prefix: "billing.X_"}))(t)
		source := check.Value(newFiles(s))(t)
		for version := uint(1); version <= latest; version++ {
			for _, read := range []func(uint) (io.ReadCloser, string, error){source.ReadUp, source.ReadDown} {
				file, name, err := read(version)
				check.Must(t, err)
				text := check.Value(io.ReadAll(file))(t)
				if strings.ContainsAny(string(text), "{}") || !strings.Contains(string(text), "billing.X_LOCK") {
					t.Errorf("%s %d %s: %s", d, version, name, text)
				}
			}
		}
	}
}
