package cli

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/args"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exec"
)

var (
	plainNumber = regexp.MustCompile(`^\d+(\.\d+)?$`)
	takesKey    = regexp.MustCompile(` (KEY|NAME|ROLE)\b`)
)

// flagHint returns the hint for a flag that is wrong.
func flagHint(cmd *cobra.Command, err error) string {
	var (
		path    = cmd.CommandPath()
		words   = cmd.Flags().Args() // those before the flag
		invalid *pflag.InvalidValueError
		unknown *pflag.NotExistError
	)
	switch {
	case len(words) > 1 && runsCommand(cmd):
		// The flag most likely belongs to the command to run.
		return exec.WithDashes(cmd, words) + " …"
	case errors.As(err, &invalid) && invalid.GetFlag().Value.Type() == "duration" && plainNumber.MatchString(invalid.GetValue()):
		return fmt.Sprintf("%s --%s %ss", path, invalid.GetFlag().Name, invalid.GetValue())
	case errors.As(err, &unknown) && similarFlag(cmd, unknown.GetSpecifiedName()) != "":
		return path + " --" + similarFlag(cmd, unknown.GetSpecifiedName())
	case errors.As(err, &unknown) && len(words) == 0 && takesKey.MatchString(cmd.Use):
		key := "-- " + args.Quote(asWritten(unknown))
		if runsCommand(cmd) {
			key += " -- CMD"
		}
		return fmt.Sprintf("%s --help; or, for a key that begins with a dash, %s %s", path, path, key)
	default:
		return path + " --help"
	}
}

// similarFlag returns the flag of a command that a mistyped one most likely stands for, or "".
func similarFlag(cmd *cobra.Command, mistyped string) (name string) {
	if len(mistyped) < 3 {
		return ""
	}
	least := 4 // two changes make another word of a short one, three of any
	if len(mistyped) > 5 {
		least = 6
	}
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		n := 2 * distance(mistyped, flag.Name)
		if mistyped[0] != flag.Name[0] {
			n++ // the first letter is rarely wrong
		}
		if n < least && !flag.Hidden {
			name, least = flag.Name, n
		}
	})
	return name
}

// distance returns how many characters must be inserted, removed or replaced to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
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
