package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

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
