package cli

import (
	"regexp"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var plainNumber = regexp.MustCompile(`^-?\d+(\.\d+)?$`)

// A seconds is the value of a flag for a duration. It takes a plain number of seconds too, as flock(1) does.
type seconds struct{ pflag.Value }

// Set implements pflag.Value.
func (s seconds) Set(text string) error {
	if plainNumber.MatchString(text) {
		text += "s"
	}
	return s.Value.Set(text)
}

// acceptSeconds gives all durations of a tree of commands such values.
func acceptSeconds(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if flag.Value.Type() != "duration" {
			return
		}
		flag.Value = seconds{flag.Value}
		if flag.DefValue == "0s" {
			flag.DefValue = "0" // so that pflag takes it for no default
		}
	})
	for _, sub := range cmd.Commands() {
		acceptSeconds(sub)
	}
}
