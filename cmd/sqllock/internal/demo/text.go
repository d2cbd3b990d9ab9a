package demo

import (
	"fmt"
	"time"
)

// ofRounds returns the number of rounds as text, if it is fixed.
func (t *timeline) ofRounds() string {
	if t.options.duration != 0 {
		return ""
	}
	return fmt.Sprintf(" of %d", t.options.rounds)
}

// roughSeconds has the precision for changing figures, exactSeconds that for results.
func roughSeconds(d time.Duration) string { return fmt.Sprintf("%.1f s", max(d, 0).Seconds()) }

func exactSeconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
