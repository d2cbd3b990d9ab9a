package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/internal/test/golden"
)

// TestReference keeps what --help says of each command in REFERENCE.md.
func TestReference(t *testing.T) {
	t.Setenv("SQLLOCK_PREFIX", "")
	t.Setenv("SQLLOCK_REGION", "")
	root := Command()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	var page strings.Builder
	page.WriteString("# Every command and flag\n\n" +
		"Written by `go test ./cmd/sqllock/internal/cli -run TestReference -update` from what `--help` prints.\n" +
		"[docs/cli.md](../../docs/cli.md) is the guide.\n")
	writeReference(&page, root)
	golden.Check(t, "../../REFERENCE.md", page.String())
}

// writeReference writes what there is to know of a command and those below it, in the order of --help.
func writeReference(page *strings.Builder, cmd *cobra.Command) {
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	fmt.Fprintf(page, "\n## %s\n\n```text\n%s\n\nUsage:\n  %s\n", cmd.CommandPath(), strings.TrimSpace(text), cmd.UseLine())
	if cmd.HasExample() {
		fmt.Fprintf(page, "\nExamples:\n%s\n", cmd.Example)
	}
	if flags := strings.TrimRight(cmd.LocalFlags().FlagUsages(), "\n"); flags != "" {
		fmt.Fprintf(page, "\nFlags:\n%s\n", flags)
	}
	page.WriteString("```\n")
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" && cmd.Name() != "completion" {
			writeReference(page, sub)
		}
	}
}
