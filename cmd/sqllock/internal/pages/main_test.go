package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/test/check"
)

// TestPages expects a man page of each command, and completions that the shells of this machine read
// without an error.
func TestPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check.Must(t, write(dir, time.Now()))
	for _, page := range []string{"man/sqllock.1", "man/sqllock-migrate-up.1", "completions/sqllock.ps1"} {
		check.Is(t, check.ErrorOf(os.Stat(filepath.Join(dir, page))), nil)
	}
	man, err := os.ReadFile(filepath.Join(dir, "man/sqllock-exec.1"))
	if err != nil || !bytes.Contains(man, []byte("=DURATION\n")) || bytes.Contains(man, []byte("=0")) {
		t.Errorf("%v, or the flags of exec have other values than their kinds: %s", err, man)
	}
	for shell, file := range map[string]string{"bash": "sqllock.bash", "zsh": "_sqllock", "fish": "sqllock.fish"} {
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("no %s here", shell)
			continue
		}
		if out, err := exec.CommandContext(t.Context(), path, "-n", filepath.Join(dir, "completions", file)).CombinedOutput(); err != nil { //nolint:gosec // a shell
			t.Errorf("%s: %v\n%s", shell, err, out)
		}
	}
}
