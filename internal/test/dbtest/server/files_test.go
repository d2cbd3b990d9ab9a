package server

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
)

// TestNothingIsInstalledWithoutPermission checks both ways to get a program.
func TestNothingIsInstalledWithoutPermission(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv(InstallVariable, "")
	t.Setenv("PATH", t.TempDir()) // no bash and no apt-get, should they be tried
	check.Is(t, check.ErrorOf(fetched(t.Context(), "thing", "true")), errMayNot, ErrMissing)
	if err := Ensure(t.Context(), []string{"no-such-program"}, "no-such-package"); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "make test") {
		t.Errorf("installation: %v", err)
	}
}

// TestScratch: a new one removes those whose owners are dead, and no others.
func TestScratch(t *testing.T) {
	parent := t.TempDir()
	t.Setenv(ScratchVariable, parent)
	// A killed owner leaves the directory and a lock file that is not locked.
	dead := filepath.Join(parent, "sqllock-servers-dead")
	check.Must(t, errors.Join(os.Mkdir(dead, 0o700), os.WriteFile(filepath.Join(dead, "owner.lock"), nil, 0o600)))
	living := check.Value(NewScratch())(t)
	other := check.Value(NewScratch())(t)
	if left, _ := filepath.Glob(filepath.Join(parent, "*")); len(left) != 2 {
		t.Errorf("%q, not those of the living owners", left)
	}
	check.Is(t, errors.Join(living.Remove(), other.Remove()), nil)
	if left, _ := filepath.Glob(filepath.Join(parent, "*")); len(left) != 0 {
		t.Errorf("%q are not removed", left)
	}
}
