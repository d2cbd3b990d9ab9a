package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/listing"
)

const (
	// timesLimit is the most rows that checkTimes reads.
	timesLimit = 1000
	// timesPause is the time between its two readings. Spring's leader writes its row each half second.
	timesPause = time.Second
)

// checkTimes looks for rows of other programs, such as Java's, with times that sqllock would misunderstand. If
// there are rows of others, it reads the table twice.
func (e *examination) checkTimes(ctx context.Context) []finding {
	if e.repository == nil {
		return nil // there is a finding about the table
	}
	before, err := e.read(ctx)
	after := before
	if err == nil && before.HasOthers() && bounded.Sleep(ctx, timesPause) {
		after, err = e.read(ctx)
	}
	if err != nil {
		return []finding{{noteworthy, "times", "not known: " + textOf(err), e.rightAdvice(ctx, err, e.names.Lock, e.rightsAdvice())}}
	}
	return timesFindings(before, after)
}

func (e *examination) read(ctx context.Context) (listing.Reading, error) {
	began := time.Now()
	rows, err := e.repository.ListFirst(ctx, timesLimit)
	return listing.Reading{Rows: rows, Began: began, End: time.Now(), All: len(rows) < timesLimit}, err
}

const timesAdvice = "with such times sqllock and that program can hold one lock at once. The clock of that host is wrong, or its JVM or JDBC driver converts between time zones: docs/spring.md#time-zones"

// timesFindings returns the findings about two readings.
func timesFindings(before, after listing.Reading) (findings []finding) {
	if rows, by := listing.Ahead(after.Rows); rows != nil {
		findings = append(findings, finding{
			broken, "times", fmt.Sprintf("another program has written a CREATED_DATE in the future, by up to %s (%s)", format.Duration(by), rowsOf(rows)), timesAdvice,
		})
	}
	if rows, by := listing.Behind(before, after); rows != nil {
		findings = append(findings, finding{
			broken, "times", fmt.Sprintf("another program has just written times that had expired before, by up to %s (%s)", format.Duration(by), rowsOf(rows)), timesAdvice,
		})
	} else if rows, by := listing.Zoned(after.Rows); rows != nil {
		findings = append(findings, finding{
			noteworthy, "times", fmt.Sprintf("another program's lock has expired, and would be held if its times were %s off (%s)", format.Duration(by), rowsOf(rows)),
			"nothing is wrong if that program has crashed. If it does hold the lock, its JVM or JDBC driver converts between time zones, and sqllock takes the lock, too: docs/spring.md#time-zones",
		})
	}
	if rows := listing.Whole(after.Rows); rows != nil {
		findings = append(findings, finding{
			noteworthy, "times", fmt.Sprintf("another program writes times without fractions of a second (%s)", rowsOf(rows)),
			"its leases may end up to a second before it knows; on MySQL and MariaDB sqllock waits for that second. With Connector/J set sendFractionalSeconds=true, and for a MariaDB before 11 use MariaDB's driver: docs/spring.md#good-to-know-in-a-mixed-fleet",
		})
	}
	return findings
}

// rowsOf says how many rows there are, and whose.
func rowsOf(rows []sqllock.Row) string {
	client := format.Printable(rows[0].Holder)
	if len(rows) == 1 {
		return "1 row, of " + client
	}
	return fmt.Sprintf("%d rows, one of %s", len(rows), client)
}
