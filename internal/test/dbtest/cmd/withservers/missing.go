package main

import (
	"strings"

	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// explainMissing prints the reasons why servers are missing that do not fit in a line of the
// box.
func (f *fleet) explainMissing() {
	for _, kind := range server.Kinds {
		if err := f.missing[kind.Name]; err != nil && strings.Contains(err.Error(), "\n") {
			say("no %s: %v", kind.Title, err)
		}
	}
}

// boxMissing prints in a box what is not tested, so that this is not overlooked in a green run.
func (f *fleet) boxMissing() {
	if len(f.missing) == 0 {
		return
	}
	const rule = "******************************************************************************"
	say(rule)
	for _, kind := range server.Kinds {
		err := f.missing[kind.Name]
		if err == nil {
			continue
		}
		reason, _, _ := strings.Cut(err.Error(), "\n")
		say("*** NO %s (%s): ITS TESTS ARE SKIPPED", kind.Title, kind.Name)
		say("***     %s", reason)
		say("***     set %s to use a server of your own", kind.Variable)
	}
	say(rule)
}
