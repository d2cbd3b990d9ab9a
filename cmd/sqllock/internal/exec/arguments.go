package exec

import (
	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/args"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
)

// nameAndCommand accepts NAME CMD ARGS… and NAME -- CMD ARGS…, where NAME is what the key is called. The two
// dashes separate the command's flags from those of exec: see CheckDashes. A key that begins with a dash
// needs two more: -- KEY -- CMD ARGS…. Errors show the example.
func nameAndCommand(name, example string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		var err error
		switch dash := cmd.ArgsLenAtDash(); {
		case isDashed(cmd, given) && len(given) > 2:
			return nil
		case isDashed(cmd, given):
			err = exit.Usagef("%s: the command to run is missing", args.Name(cmd))
		case len(given) == 0 || dash == 0:
			err = exit.Usagef("%s: %s is missing", args.Name(cmd), name)
		case len(given) == max(dash, 1):
			err = exit.Usagef("%s: the command to run is missing", args.Name(cmd))
		case args.IsDSN(given[1]): // as the command or before it
			return exit.WithHint(exit.Usagef("%s: what follows %s looks like a DSN", args.Name(cmd), name), "%s --dsn … %s", cmd.CommandPath(), example)
		case dash > 1:
			err = exit.Usagef("%s: %q is one argument too many before --", args.Name(cmd), given[1])
		default:
			return nil
		}
		return exit.WithHint(err, "%s %s", cmd.CommandPath(), example)
	}
}

// isDashed reports whether the arguments are -- KEY --, with or without a command.
func isDashed(cmd *cobra.Command, given []string) bool {
	return cmd.ArgsLenAtDash() == 0 && len(given) > 1 && given[1] == "--"
}

// split returns the key and the command of arguments that nameAndCommand accepts.
func split(cmd *cobra.Command, given []string) (key string, command []string) {
	if isDashed(cmd, given) {
		return given[0], given[2:]
	}
	return given[0], given[1:]
}
