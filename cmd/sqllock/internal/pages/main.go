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
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

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
	cmd.LocalFlags().VisitAll(withPlaceholder)
	for _, sub := range cmd.Commands() {
		asMarkdown(sub)
	}
}

// A placeholder is the value of a flag in a man page. Its type is none whose defaults the generator quotes.
type placeholder struct{ pflag.Value }

func (placeholder) Type() string { return "" }

// withPlaceholder makes a man page say what kind of value a flag takes, where the generator writes the default.
func withPlaceholder(flag *pflag.Flag) {
	if flag.NoOptDefVal != "" {
		return // it takes none
	}
	name, usage := pflag.UnquoteUsage(flag)
	if !slices.Contains([]string{"", "0", "[]"}, flag.DefValue) {
		usage += " (default " + flag.DefValue + ")"
	}
	flag.Usage, flag.DefValue, flag.Value = usage, strings.ToUpper(strings.TrimSuffix(name, "Array")), placeholder{flag.Value}
}
