package probe

import (
	"testing"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
)

// With a given layout Open does not look, so the caller must hear that a sequence cannot be used.
func TestHasSequence(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		wsrep, cache string
		good         bool
	}{
		"a sequence":           {"OFF", "0", true},
		"one with a cache":     {"OFF", "1000", false},
		"one on a Galera node": {"ON", "0", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mocked, mock, err := sqlmock.New()
			check.Must(t, err)
			t.Cleanup(func() { _ = mocked.Close() }) // the mock did not expect it
			mock.ExpectQuery("FENCE").WillReturnRows(
				sqlmock.NewRows([]string{"minimum_value", "maximum_value", "increment", "cache_size", "cycle_option"}).AddRow(1, "9223372036854775806", 1, test.cache, 0))
			mock.ExpectQuery("SELECT CAST").WillReturnRows(sqlmock.NewRows([]string{"name", "value"}).AddRow("WSREP_ON", test.wsrep))
			found, err := HasSequence(t.Context(), mocked, sqltext.MySQL(), sqltext.Names{Fence: "FENCE"})
			if test.good && (err != nil || !found) || !test.good && !dbcall.Is(err, dbcall.WrongTable) {
				t.Errorf("found %t, error %v", found, err)
			}
		})
	}
}
