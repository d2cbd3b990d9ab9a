package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/args"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
)

var takesKey = regexp.MustCompile(` (KEY|NAME|ROLE)\b`)

// flagHint returns the hint for a flag that is wrong.
func flagHint(cmd *cobra.Command, err error) string {
	var (
		path    = cmd.CommandPath()
		words   = cmd.Flags().Args() // those before the flag
		unknown *pflag.NotExistError
	)
	switch {
	case withoutDSN(err) != err: //nolint:errorlint // it is another one, or the same
		return path + " --dsn …"
	case errors.As(err, &unknown) && runsCommand(cmd) && asWritten(unknown) == "-c": // flock's
		return path + " KEY -- sh -c 'LINE'"
	case errors.As(err, &unknown) && similarFlag(cmd, unknown.GetSpecifiedName()) != "":
		return path + " --" + similarFlag(cmd, unknown.GetSpecifiedName())
	case errors.As(err, &unknown) && len(words) == 0 && takesKey.MatchString(cmd.Use):
		key := "-- " + args.Quote(asWritten(unknown))
		if runsCommand(cmd) {
			key += " -- CMD"
		}
		return fmt.Sprintf("%s --help; or, for a key that begins with a dash, %s%s %s", path, path, args.Given(cmd), key)
	default:
		return path + " --help"
	}
}

// withoutDSN returns the error about the value of a flag without that, if it is a DSN.
func withoutDSN(err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) && args.IsDSN(invalid.GetValue()) {
		return dsnOf(invalid.GetFlag())
	}
	return err
}

func dsnOf(flag *pflag.Flag) error { return fmt.Errorf("--%s has a DSN as its value", flag.Name) }

// checkDSNs refuses a DSN, which may have a password, as the value of a flag that takes words: whatever refuses it later
// would print it. A key may look like one.
func checkDSNs(cmd *cobra.Command) (err error) {
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		switch flag.Name {
		case "dsn", "key", "name", "role", "forget":
		default:
			if slices.ContainsFunc(args.Values(flag), args.IsDSN) {
				err = exit.WithHint(exit.Usagef("%w", dsnOf(flag)), "%s --dsn …", cmd.CommandPath())
			}
		}
	})
	return err
}

// similarFlag returns the flag of a command that a mistyped one most likely stands for, or "". Cobra compares names of
// commands.
func similarFlag(cmd *cobra.Command, mistyped string) string {
	most := min(len(mistyped)/3, 2) // two changes make another word of a short one, three of any
	var flags cobra.Command
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		flags.AddCommand(&cobra.Command{Use: flag.Name, Hidden: flag.Hidden, Run: func(*cobra.Command, []string) {}})
	})
	for flags.SuggestionsMinimumDistance = 1; flags.SuggestionsMinimumDistance <= most; flags.SuggestionsMinimumDistance++ {
		if similar := flags.SuggestionsFor(mistyped); len(similar) > 0 {
			first := slices.IndexFunc(similar, func(name string) bool { return name[0] == mistyped[0] }) // it is rarely wrong
			return similar[max(first, 0)]
		}
	}
	return ""
}

// runsCommand reports whether a command runs another one.
func runsCommand(cmd *cobra.Command) bool { return cmd.Name() == "exec" || cmd.Name() == "lead" }

// asWritten returns an unknown flag as the user has written it.
func asWritten(unknown *pflag.NotExistError) string {
	if short := unknown.GetSpecifiedShortnames(); short != "" {
		return "-" + short
	}
	return "--" + unknown.GetSpecifiedName()
}
