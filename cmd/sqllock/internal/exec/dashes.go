package exec

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/args"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
)

// CheckDashes returns an error if a flag follows the command that cmd, which is exec or lead, is to run, and no two
// dashes stand before the command: the flag could be meant for either. words is what follows the name of cmd.
func CheckDashes(cmd *cobra.Command, words []string) error {
	cmd.InheritedFlags() // has Flags know them
	key, rest, ok := firstWord(cmd.Flags(), words)
	if !ok {
		return nil
	}
	program, arguments, ok := firstWord(cmd.Flags(), rest)
	if !ok {
		return nil
	}
	i := slices.IndexFunc(arguments, func(word string) bool { return strings.HasPrefix(word, "-") && word != "-" })
	if i < 0 || arguments[i] == "--" { // nameAndCommand has an error for words before two dashes
		return nil
	}
	hint := cmd.CommandPath()
	if len(words) > len(arguments)+2 {
		hint += " …" // flags, which may have a password
	}
	return exit.WithHint(exit.Usagef("%s: %s after the command may be meant for the command or for %[1]s: put -- before the command", args.Name(cmd), args.Quote(arguments[i])),
		"%s %s -- %s", hint, args.Quote(key), args.Quote(append([]string{program}, arguments...)...))
}

// firstWord returns the first of words that is no flag and no flag's value, and those that follow it. It sets no flag.
// ok is false if there is none, if two dashes stand before it, or if a flag is wrong, which cobra reports.
func firstWord(flags *pflag.FlagSet, words []string) (word string, rest []string, ok bool) {
	flags.SetInterspersed(false)
	defer flags.SetInterspersed(true)
	err := flags.ParseAll(words, func(*pflag.Flag, string) error { return nil })
	if err != nil || flags.ArgsLenAtDash() >= 0 || flags.NArg() == 0 {
		return "", nil, false
	}
	return flags.Arg(0), flags.Args()[1:], true
}
