package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
)

// maxClockDifference is too small to matter in a listing.
const maxClockDifference = time.Second

func (e *examination) checkClock(ctx context.Context) []finding {
	d, err := e.ClockDifference(ctx)
	if err != nil {
		return []finding{{noteworthy, "clocks", "the database's time is not known: " + exit.Text(err), "locks do not compare clocks, so they work"}}
	}
	return []finding{clockFinding(d.Ahead, d.Uncertainty)}
}

// clockFinding returns the finding for a difference that was measured with an uncertainty.
func clockFinding(difference, uncertainty time.Duration) finding {
	way := "ahead of"
	if difference < 0 {
		way = "behind"
	}
	switch {
	case difference.Abs() > maxClockDifference+uncertainty:
		return finding{
			noteworthy, "clocks", fmt.Sprintf("the database's is %s %s this host's", format.Duration(difference.Abs()), way),
			"locks do not compare clocks, so they work; but times in the table do not match those in the logs of this host: synchronize both clocks with NTP",
		}
	case difference.Abs() <= uncertainty:
		return finding{good, "clocks", fmt.Sprintf("no difference between the database's and this host's (within %s)", roundTime(uncertainty)), ""}
	default:
		return finding{good, "clocks", fmt.Sprintf("the database's is %s %s this host's", roundTime(difference.Abs()), way), ""}
	}
}
