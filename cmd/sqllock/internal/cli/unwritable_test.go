//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/program"
)

// othersDirectory returns a directory that all users may read, and only this one may write
// to.
func othersDirectory(t *testing.T) string {
	t.Helper()
	directory := t.TempDir()
	for _, d := range []string{directory, filepath.Dir(directory)} {
		if err := os.Chmod(d, 0o755); err != nil { //nolint:gosec // another user reads it
			t.Fatal(err)
		}
	}
	return directory
}

// asOther runs a command line as a user who may not write, and returns its output.
func asOther(t *testing.T, state string, code int, args ...string) string {
	t.Helper()
	p := program.StartAs(t, "", "env", append([]string{"XDG_STATE_HOME=" + state, "without-rights", "sqllock"}, args...)...)
	p.WantCode(code)
	return p.Stdout.Rest() + "\n" + p.Stderr.Rest()
}

// TestUnwritableHints uses files and directories of another user. The hints do not mention a
// primary server.
func TestUnwritableHints(t *testing.T) {
	program.Slow(t)
	t.Parallel()
	const (
		state = "try: --dsn sqlite:FILE, or XDG_STATE_HOME=DIRECTORY, where this user may write"
		file  = "a file that this user may write to, in an existing directory that this user may write to"
	)
	d := othersDirectory(t)
	mine := filepath.Join(d, "sqllock", "sqllock.db")
	check.Must(t, os.Mkdir(filepath.Dir(mine), 0o700))
	hints := func(dsn string, hint string, args ...string) {
		t.Helper()
		code, mark := exit.Database, "try: "
		if args[0] == "doctor" {
			code, mark = exit.Failure, "→ "
		}
		if dsn != "" {
			args = append([]string{args[0], "--dsn", dsn}, args[1:]...)
		}
		out := asOther(t, d, code, args...)
		program.Contains(t, out, mark+strings.TrimPrefix(hint, "try: "))
		if strings.Contains(out, "primary server") {
			t.Errorf("a file has no primary server: %s", out)
		}
	}
	hints("", state, "list")
	hints("", state, "exec", "--local", "nightly", "--", "true")
	if err := os.Chmod(filepath.Dir(mine), 0o755); err != nil { //nolint:gosec // as above
		t.Fatal(err)
	}
	hints("", state, "list") // the file does not exist and cannot be created
	want(t, 0, "migrate", "up", "--dsn", "sqlite:"+mine)
	hints("", state, "list")
	hints("sqlite:"+mine, file, "list")
	hints("sqlite:"+mine, file, "doctor")
	hints("sqlite:"+filepath.Join(d, "new.db"), file, "migrate", "up")
	hints("file:"+mine+"?mode=ro&immutable=1", file, "cleanup")
	hints("file:"+mine+"?mode=ro&immutable=1", file, "exec", "nightly", "--", "true")
	hints("file:"+mine+"?mode=ro&immutable=1", "give "+file, "doctor")
}
