//go:build linux

package reliability

import (
	"slices"
	"strings"

	"github.com/sqllock/sqllock/internal/test/machine"
)

// watch knows when this process did not run. Other processes and the server may have gone on then.
var watch *machine.Watch

// noAnswer reports whether a statement without a deadline got no answer in time, or not while the lease
// lasted, as on a machine that stands still.
func noAnswer(err error) bool {
	return err != nil && slices.ContainsFunc([]string{"no answer", "not answer", "longer to answer"}, func(text string) bool {
		return strings.Contains(err.Error(), text)
	})
}
