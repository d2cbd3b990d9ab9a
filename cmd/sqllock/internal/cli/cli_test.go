package cli

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/complete"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/internal/test/check"
)

// A command line is that of a reader, or in a script of theirs. In a console the rest is output.
// What comes after | or # is not the command's.
var commandLine = regexp.MustCompile(`^(?:\$ )?(?:go run \./cmd/)?sqllock((?: +[^\s#|]\S*)+)`)

// TestCommandsOfTheDocuments reads the command lines of the README and of docs as the command does, so
// that none has a subcommand, flag or argument which does not exist. What they do is in testdata/script.
func TestCommandsOfTheDocuments(t *testing.T) {
	t.Parallel()
	pages := check.Value(filepath.Glob("../../../../docs/*.md"))(t)
	read := 0
	for _, page := range append(pages, "../../../../README.md") {
		text := check.Value(os.ReadFile(page))(t)
		language, fenced := "", false
		for line := range strings.Lines(string(text)) {
			if after, ok := strings.CutPrefix(strings.TrimSpace(line), "```"); ok {
				language, fenced = after, !fenced
			}
			typed := fenced && (language == "sh" || language == "console" && strings.HasPrefix(line, "$ "))
			match := commandLine.FindStringSubmatch(line)
			if !typed || match == nil || strings.HasSuffix(match[1], "<Tab>") {
				continue
			}
			read++
			if err := understand(strings.Fields(strings.ReplaceAll(match[1], `"`, ""))); err != nil {
				t.Errorf("%s: %s: %v", filepath.Base(page), strings.TrimSpace(line), err)
			}
		}
	}
	if read < 30 {
		t.Errorf("%d command lines", read)
	}
}

// understand returns what the command would say of the words before it does anything.
func understand(words []string) error {
	cmd, rest, err := Command().Find(words)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if !cmd.Runnable() {
		return fmt.Errorf("%q does nothing by itself", cmd.CommandPath())
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// A server that accepts connections and never answers ends in no candidates, not in a shell that
// hangs. The second that this takes is the limit itself.
func TestAServerThatDoesNotAnswer(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	listener := check.Value((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t) // the system accepts for it
	defer listener.Close()
	address := listener.Addr().String()
	for _, dsn := range []string{"postgres://app@" + address + "/app?sslmode=disable", "mysql://app@" + address + "/app"} {
		flags := &connect.Flags{DSN: dsn, Prefix: "INT_", Region: "DEFAULT"}
		cmd := &cobra.Command{}
		cmd.SetContext(t.Context())
		offered, directive := complete.Rows(flags)(cmd, nil, "")
		if len(offered) > 0 || directive != cobra.ShellCompDirectiveNoFileComp {
			t.Errorf("%s: %q, %v", dsn, offered, directive)
		}
	}
}

func TestVersion(t *testing.T) {
	platform := runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH
	commit := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs.revision", Value: "eca3b9c2122a0f3c"}, {Key: "vcs.modified", Value: modified}}
	}
	main := func(version string, settings []debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: "github.com/sqllock/sqllock", Version: version}, Settings: settings}
	}
	for name, test := range map[string]struct {
		release string
		info    *debug.BuildInfo
		want    string
	}{
		"go install":                           {"", main("v0.1.0", nil), "sqllock v0.1.0 (" + platform + ")"},
		"a release":                            {"v0.1.0", main("v0.1.0", commit("false")), "sqllock v0.1.0 (commit eca3b9c2122a, " + platform + ")"},
		"a release of a packager, without git": {"v0.1.0", main("(devel)", nil), "sqllock v0.1.0 (" + platform + ")"},
		"a checkout": {
			"", main("v0.0.0-20261121101442-eca3b9c2122a", commit("false")),
			"sqllock v0.0.0-20261121101442-eca3b9c2122a (commit eca3b9c2122a, " + platform + ")",
		},
		"a checkout with changes": {
			"", main("v0.0.0-20261121101442-eca3b9c2122a+dirty", commit("true")),
			"sqllock v0.0.0-20261121101442-eca3b9c2122a+dirty (commit eca3b9c2122a with changes, " + platform + ")",
		},
		"a checkout, -buildvcs=false": {"", main("(devel)", nil), "sqllock devel (" + platform + ")"},
		"no information":              {"", nil, "sqllock devel (" + platform + ")"},
	} {
		t.Run(name, func(t *testing.T) {
			check.Equal(t, "version", newBuild(test.release, test.info).String(), test.want)
		})
	}
}
