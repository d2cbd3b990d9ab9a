// Command pages writes the man pages and completions of sqllock, for releases and packagers:
//
//	go -C cmd/sqllock/internal/pages run . -out DIR [-date UNIX]
//
// It is a module of its own because only this needs cobra's generator and what that imports.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/cli"
)

func main() {
	out := flag.String("out", "", "the `directory` that is written")
	date := flag.Int64("date", time.Now().Unix(), "the date of the man pages, in `seconds` since 1970")
	flag.Parse()
	if err := write(*out, time.Unix(*date, 0).UTC()); err != nil {
		fmt.Fprintln(os.Stderr, "pages:", err)
		os.Exit(1)
	}
}

// write writes man/*.1 and completions/* below dir.
func write(dir string, date time.Time) error {
	man, completions := filepath.Join(dir, "man"), filepath.Join(dir, "completions")
	if err := errors.Join(os.RemoveAll(man), os.MkdirAll(man, 0o755), os.MkdirAll(completions, 0o755)); err != nil {
		return err
	}
	root := cli.Command()
	if err := cmp.Or(
		root.GenBashCompletionFileV2(filepath.Join(completions, "sqllock.bash"), true),
		root.GenZshCompletionFile(filepath.Join(completions, "_sqllock")),
		root.GenFishCompletionFile(filepath.Join(completions, "sqllock.fish"), true),
		root.GenPowerShellCompletionFileWithDesc(filepath.Join(completions, "sqllock.ps1")),
	); err != nil {
		return err
	}
	asMarkdown(root)
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "sqllock", Manual: "User Commands", Date: &date}, man)
}

// asMarkdown prepares the texts for the generator of the man pages, which reads them as Markdown:
// lines that are indented stay lines of their own.
func asMarkdown(cmd *cobra.Command) {
	cmd.DisableAutoGenTag = true
	lines := strings.Split(cmd.Long, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "  ") {
			lines[i] = "  " + line
		}
	}
	cmd.Long = strings.Join(lines, "\n")
	for _, sub := range cmd.Commands() {
		asMarkdown(sub)
	}
}
