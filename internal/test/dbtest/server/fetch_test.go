package server

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// inEmptyCache sets an empty cache directory for the test.
func inEmptyCache(t *testing.T) {
	t.Helper()
	if err := onlyAMD64(); err != nil {
		t.Skip(err)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv(InstallVariable, "yes")
}

// TestNothingIsInstalledWithoutPermission checks both ways to get a program.
func TestNothingIsInstalledWithoutPermission(t *testing.T) {
	inEmptyCache(t)
	t.Setenv(InstallVariable, "")
	ran := filepath.Join(t.TempDir(), "ran")
	if _, err := fetched(t.Context(), "thing", `touch "$2"`, ran); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "make test") {
		t.Errorf("download: %v", err)
	}
	if _, err := os.Stat(ran); !os.IsNotExist(err) {
		t.Errorf("the script has run: %v", err)
	}
	t.Setenv("PATH", t.TempDir()) // no apt-get, should it be tried
	nothing := func() (string, bool) { return "", false }
	if _, err := ensure(t.Context(), nothing, "sqllock-no-such-package"); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "make test") {
		t.Errorf("installation: %v", err)
	}
}

func TestConcurrentCallsFetchOnce(t *testing.T) {
	inEmptyCache(t)
	const script = `echo "$2" >>"$1/made"; touch "$1/$$"`
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			dir, err := fetched(t.Context(), "thing", script, "argument")
			if err != nil {
				t.Error(err)
				return
			}
			if made, err := os.ReadFile(filepath.Join(dir, "made")); err != nil || string(made) != "argument\n" {
				t.Errorf("made: %q, error %v", made, err)
			}
			if files, err := os.ReadDir(dir); err != nil || len(files) != 2 {
				t.Errorf("%d files, error %v; the script has run more than once", len(files), err)
			}
		})
	}
	all.Wait()
}

func TestFailedFetchIsRetried(t *testing.T) {
	inEmptyCache(t)
	_, err := fetched(t.Context(), "thing", `touch "$1/half"; echo the mirror is closed >&2; exit 3`)
	if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "the mirror is closed") {
		t.Errorf("error %v is not an ErrMissing with the script's output", err)
	}
	dir, err := fetched(t.Context(), "thing", `touch "$1/whole"`)
	if err != nil {
		t.Fatal(err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 || files[0].Name() != "whole" {
		t.Errorf("files %v, error %v", files, err)
	}
}

func TestFetchReplacesThePartialDirectoryOfAKilledProcess(t *testing.T) {
	inEmptyCache(t)
	left := filepath.Join(os.Getenv("XDG_CACHE_HOME"), "sqllock-dbtest", "thing.partial", "half")
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := fetched(t.Context(), "thing", "true")
	if err != nil {
		t.Fatal(err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
		t.Errorf("files %v, error %v", files, err)
	}
}
