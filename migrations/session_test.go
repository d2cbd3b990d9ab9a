package migrations

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/fakedb"
)

// TestMySQLReleasesItsLock has a server whose locks outlive the session: whatever becomes of a migration, its last
// statement releases the lock that it has acquired.
func TestMySQLReleasesItsLock(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"migrated": nil, "failed": errors.New("a step failed")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent []string
			db := fakedb.OpenWith(func(text string) { sent = append(sent, text) })
			defer db.Close()
			s := check.Value(open(t.Context(), db, dialect.MySQL(), &Options{Prefix: "billing.X_"}))(t)
			check.Is(t, s.locked(t.Context(), func() error { return failure }), failure)
			acquired := slices.IndexFunc(sent, func(text string) bool { return strings.Contains(text, "GET_LOCK(") })
			want := strings.Replace(strings.TrimSuffix(sent[acquired], ", 1)")+")", "GET_LOCK(", "RELEASE_LOCK(", 1)
			check.Equal(t, "the last statement", sent[len(sent)-1], want)
			check.Equal(t, "sessions", db.Stats().OpenConnections, 0)
		})
	}
}
