package sqllock_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// TestREADME compiles the Go code of the README, each block as the body of a
// function of its own.
func TestREADME(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	must(t, err)
	blocks := goBlock.FindAllStringSubmatch(string(readme), -1)
	if len(blocks) < 2 {
		t.Fatalf("%d blocks", len(blocks))
	}
	var program strings.Builder
	program.WriteString(`package readme

import (
	"context"
	"database/sql"
	"errors"
	"os"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/pgxlock"
)

var (
	db       *sql.DB
	registry *sqllock.Registry
)

func work(context.Context) error { return nil }
`)
	for i, block := range blocks {
		fmt.Fprintf(&program, "\nfunc block%d(ctx context.Context) error {\n%s\nreturn err\n}\n", i, block[1])
	}
	path := filepath.Join(t.TempDir(), "readme.go")
	must(t, os.WriteFile(path, []byte(program.String()), 0o600))
	build := append([]string{"build", "-o", os.DevNull}, buildFlags(t)...)
	//nolint:gosec // our own program
	if out, err := exec.CommandContext(t.Context(), "go", append(build, path)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// buildFlags are those of this program: what it was compiled from need not be compiled again.
func buildFlags(t *testing.T) (flags []string) {
	t.Helper()
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("no information about the build")
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "-race", "-gcflags", "-tags":
			flags = append(flags, setting.Key+"="+setting.Value)
		}
	}
	return flags
}
