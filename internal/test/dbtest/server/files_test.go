package server

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
)

// TestFetched: a program is fetched by one of several callers, after a failure anew, and without what a
// killed process has left.
func TestFetched(t *testing.T) {
	if err := onlyAMD64(); err != nil {
		t.Skip(err)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv(InstallVariable, "yes")
	_, err := fetched(t.Context(), "thing", `touch "$1/half"; echo the mirror is closed >&2; exit 3`)
	if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "the mirror is closed") {
		t.Errorf("error %v is not an ErrMissing with the script's output", err)
	}
	left := filepath.Join(os.Getenv("XDG_CACHE_HOME"), "sqllock-dbtest", "thing.partial", "half")
	check.Must(t, os.MkdirAll(left, 0o700))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			dir, err := fetched(t.Context(), "thing", `echo "$2" >"$1/$$"`, "argument")
			if err != nil {
				t.Error(err)
				return
			}
			if files, err := os.ReadDir(dir); err != nil || len(files) != 1 || files[0].Name() == "half" {
				t.Errorf("files %v, error %v", files, err)
			}
		})
	}
	all.Wait()
}

// TestNothingIsInstalledWithoutPermission checks both ways to get a program.
func TestNothingIsInstalledWithoutPermission(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv(InstallVariable, "")
	t.Setenv("PATH", t.TempDir()) // no bash and no apt-get, should they be tried
	if _, err := fetched(t.Context(), "thing", "true"); !errors.Is(err, errMayNot) || !errors.Is(err, ErrMissing) {
		t.Errorf("download: %v", err)
	}
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
	living, err := NewScratch()
	check.Must(t, err)
	other, err := NewScratch()
	check.Must(t, err)
	if left, _ := filepath.Glob(filepath.Join(parent, "*")); len(left) != 2 {
		t.Errorf("%q, not those of the living owners", left)
	}
	if err := errors.Join(living.Remove(), other.Remove()); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(parent, "*")); len(left) != 0 {
		t.Errorf("%q are not removed", left)
	}
}

func TestPgbouncerTarget(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"postgres://me@db:5433/x?sslmode=disable": "host=db port=5433 user='me'",
		"postgres://me:it%27s@[::1]:1/x":          "host=::1 port=1 user='me' password='it''s'",
		"postgres:///x?host=/run/postgresql":      "",
		"postgres://me@db/x":                      "host=db port=5432 user='me'",
		"postgres://db/x":                         "",
		"host=db port=5432":                       "",
	} {
		got, err := pgbouncerTarget(url)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, error %v; not %q", url, got, err, want)
		}
	}
}
