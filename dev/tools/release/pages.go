package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/cli"
)

// The files below the directory of pages.
const (
	manDir         = "man"
	bashCompletion = "completions/sqllock.bash"
	zshCompletion  = "completions/_sqllock"
	fishCompletion = "completions/sqllock.fish"
	powershell     = "completions/sqllock.ps1"
)

// writePages writes the man pages, dated when, and the completions for each shell.
func writePages(dir string, when time.Time) error {
	man := filepath.Join(dir, manDir)
	if err := errors.Join(os.MkdirAll(man, 0o755), os.MkdirAll(filepath.Join(dir, "completions"), 0o755)); err != nil {
		return err
	}
	root := cli.Command()
	for name, generate := range map[string]func(io.Writer) error{
		bashCompletion: func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		zshCompletion:  root.GenZshCompletion,
		fishCompletion: func(w io.Writer) error { return root.GenFishCompletion(w, true) },
		powershell:     root.GenPowerShellCompletionWithDesc,
	} {
		var text bytes.Buffer
		if err := generate(&text); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text.Bytes(), 0o644); err != nil {
			return err
		}
	}
	asMarkdown(root)
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "sqllock", Manual: "User Commands", Date: &when}, man)
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
