// Package args checks the arguments of commands, and quotes arguments for hints.
package args

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
)

// Exactly accepts the arguments that names describes, no more and no fewer.
func Exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return exit.WithHint(exit.Usagef("%s: %s is missing", Name(cmd), names[len(args)]), "%s --help", cmd.CommandPath())
		case len(args) > len(names):
			return exit.WithHint(exit.Usagef("%s: %q is one argument too many", Name(cmd), args[len(names)]), "%s --help", cmd.CommandPath())
		}
		return nil
	}
}

// Name returns the name of a subcommand, as in "migrate up", for an error. The program's
// own name stands before all errors.
func Name(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}

// NoneButCommands rejects all arguments of a command that only groups other commands.
func NoneButCommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := exit.Usagef("%q is not a command of %s", args[0], cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		return exit.WithHint(err, "%s %s", cmd.CommandPath(), strings.Join(similar, ", "))
	}
	return exit.WithHint(err, "%s --help", cmd.CommandPath())
}

var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// Quote returns words as they are written in a shell.
func Quote(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		if quoted[i] = word; !plainWord.MatchString(word) {
			quoted[i] = "'" + strings.ReplaceAll(format.Printable(word), "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
