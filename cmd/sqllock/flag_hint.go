package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var (
	plainNumber = regexp.MustCompile(`^\d+(\.\d+)?$`)
	plainWord   = regexp.MustCompile(`^[\w@%+=:,./-]+$`)
	takesKey    = regexp.MustCompile(` (KEY|NAME)\b`)
)

// flagHint is the advice for a flag that was not understood.
func flagHint(cmd *cobra.Command, err error) string {
	var (
		path    = cmd.CommandPath()
		words   = cmd.Flags().Args() // those before the flag
		invalid *pflag.InvalidValueError
		unknown *pflag.NotExistError
	)
	switch {
	case len(words) > 1 && isExec(cmd):
		// The flag is most likely one of the command to run.
		return withDashes(cmd, words) + " …"
	case errors.As(err, &invalid) && invalid.GetFlag().Value.Type() == "duration" && plainNumber.MatchString(invalid.GetValue()):
		return fmt.Sprintf("%s --%s %ss", path, invalid.GetFlag().Name, invalid.GetValue())
	case errors.As(err, &unknown) && len(words) == 0 && takesKey.MatchString(cmd.Use):
		key := "-- " + shellWords([]string{asWritten(unknown)})
		if isExec(cmd) {
			key += " -- CMD"
		}
		return fmt.Sprintf("%s --help; or, for a key that begins with a dash, %s %s", path, path, key)
	default:
		return path + " --help"
	}
}

func isExec(cmd *cobra.Command) bool { return cmd.Name() == "exec" }

// asWritten is an unknown flag as it stood in the command line.
func asWritten(unknown *pflag.NotExistError) string {
	if short := unknown.GetSpecifiedShortnames(); short != "" {
		return "-" + short
	}
	return "--" + unknown.GetSpecifiedName()
}

// shellWords writes words as a shell takes them.
func shellWords(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		if quoted[i] = word; !plainWord.MatchString(word) {
			quoted[i] = "'" + strings.ReplaceAll(printable(word), "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
