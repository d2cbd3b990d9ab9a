package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A command line is that of a reader, or in a script of theirs. What comes after | or # is not
// the command's.
var commandLine = regexp.MustCompile(`^(?:\$ )?(?:go run \./cmd/)?sqllock((?: +[^\s#|]\S*)+)`)

// TestCommandsOfTheDocuments reads the command lines of the README and of docs as the command does, so
// that none has a subcommand, flag or argument which does not exist. What they do is in testdata/script.
func TestCommandsOfTheDocuments(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		shell, fenced := false, false
		for line := range strings.Lines(string(text)) {
			if language, ok := strings.CutPrefix(strings.TrimSpace(line), "```"); ok {
				fenced = !fenced
				shell = fenced && (language == "sh" || language == "console")
			}
			match := commandLine.FindStringSubmatch(line)
			if !shell || match == nil || isNoCommand(match[1]) {
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

// isNoCommand tells the output of `sqllock version`, and what is not typed to its end.
func isNoCommand(words string) bool {
	return strings.HasPrefix(words, " v0.") || strings.HasSuffix(words, "<Tab>")
}

// understand returns what the command would say of the words before it does anything.
func understand(words []string) error {
	cmd, rest, err := newRootCommand(func() {}).Find(words)
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
