// Package args checks the arguments of commands, and quotes arguments for hints.
package args

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
			return exit.WithHint(exit.Usagef("%s: %q is one argument too many", Name(cmd), Shown(args[len(names)])), "%s %s", cmd.CommandPath(), instead(args[len(names)]))
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
	err := exit.Usagef("%q is not a command of %s", Shown(args[0]), cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		for i, name := range similar {
			similar[i] = cmd.CommandPath() + " " + name
		}
		return exit.WithHint(err, "%s", strings.Join(similar, "; or "))
	}
	return exit.WithHint(err, "%s %s", cmd.CommandPath(), instead(args[0]))
}

// dsn is how a DSN begins that may have a password, and what one may contain.
var dsn = regexp.MustCompile(`(?is)^(postgres|postgresql|mysql|mariadb|tidb)://|://.*:.*@|@\w*\(|:.*@/|password\s*=`)

// IsDSN reports whether a word looks like a DSN that may have a password. Most likely --dsn is missing before it.
func IsDSN(word string) bool { return dsn.MatchString(word) }

// Shown returns a word of the command line for a message: three dots instead of a DSN.
func Shown(word string) string {
	if IsDSN(word) {
		return "…"
	}
	return word
}

// instead returns what to try after a command instead of a word that is too many.
func instead(word string) string {
	if IsDSN(word) {
		return "--dsn …"
	}
	return "--help"
}

var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// Quote returns words as they are written in a shell. One with characters that no terminal shows is
// written as in bash, zsh and POSIX of 2024. Three dots stand for a DSN.
func Quote(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		switch {
		case IsDSN(word):
			quoted[i] = Shown(word)
		case plainWord.MatchString(word):
			quoted[i] = word
		case format.Printable(word) == word:
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		default:
			quoted[i] = escaped(word)
		}
	}
	return strings.Join(quoted, " ")
}

// escaped returns a word as $'…', in ASCII.
func escaped(word string) string {
	var text strings.Builder
	for i := range len(word) {
		switch c := word[i]; {
		case c == '\'' || c == '\\':
			text.WriteString(`\` + string(c))
		case c < ' ' || c > '~':
			fmt.Fprintf(&text, `\%03o`, c)
		default:
			text.WriteByte(c)
		}
	}
	return "$'" + text.String() + "'"
}

// Key returns a key as it is written in a shell after the flags of a command: the key may look like a flag.
func Key(key string) string {
	if strings.HasPrefix(key, "-") {
		return "-- " + Quote(key)
	}
	return Quote(key)
}

// Given returns the flags that a command was given, but for some, as they are written in a shell, each after a
// space. Three dots stand for a DSN, which may have a password.
func Given(cmd *cobra.Command, but ...string) string {
	var text strings.Builder
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		switch {
		case slices.Contains(but, flag.Name):
		case flag.Name == "dsn":
			text.WriteString(" …")
		case flag.NoOptDefVal != "" && flag.Value.String() == flag.NoOptDefVal:
			text.WriteString(" --" + flag.Name)
		default:
			for _, value := range Values(flag) {
				text.WriteString(" " + Quote("--"+flag.Name+"="+value))
			}
		}
	})
	return text.String()
}

// Values returns the values of a flag, which may be given several times.
func Values(flag *pflag.Flag) []string {
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		return list.GetSlice()
	}
	return []string{flag.Value.String()}
}
