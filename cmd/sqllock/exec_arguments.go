package main

import (
	"github.com/spf13/cobra"
)

// keyAndCommand wants KEY -- CMD ARGS…. The two dashes tell the command's flags
// from exec's. A key that begins with a dash needs two more: -- KEY -- CMD ARGS….
func keyAndCommand(cmd *cobra.Command, args []string) error {
	var err error
	switch dash := cmd.ArgsLenAtDash(); {
	case isDashed(cmd, args) && len(args) > 2:
		return nil
	case isDashed(cmd, args):
		err = usageError("%s: the command to run is missing", cmd.CommandPath())
	case len(args) == 0 || dash == 0:
		err = usageError("%s: KEY is missing", cmd.CommandPath())
	case dash < 0:
		err = usageError("%s: the command to run stands behind --", cmd.CommandPath())
		if len(args) > 1 {
			return withHint(err, "%s", withDashes(cmd, args))
		}
	case dash > 1:
		err = usageError("%s: %q is one argument too many before --", cmd.CommandPath(), args[1])
	case len(args) == dash:
		err = usageError("%s: the command to run is missing", cmd.CommandPath())
	default:
		return nil
	}
	return withHint(err, "%s nightly -- ./report.sh", cmd.CommandPath())
}

// isDashed reports whether the arguments are -- KEY -- and perhaps a command.
func isDashed(cmd *cobra.Command, args []string) bool {
	return cmd.ArgsLenAtDash() == 0 && len(args) > 1 && args[1] == "--"
}

// split returns the key and the command of arguments that keyAndCommand accepts.
func split(cmd *cobra.Command, args []string) (key string, command []string) {
	if isDashed(cmd, args) {
		return args[0], args[2:]
	}
	return args[0], args[1:]
}

// withDashes is the command line with the two dashes behind the key.
func withDashes(cmd *cobra.Command, args []string) string {
	return cmd.CommandPath() + " " + shellWords(args[:1]) + " -- " + shellWords(args[1:])
}
