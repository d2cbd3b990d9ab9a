package connect

import (
	"context"
	"time"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/sqltext"
)

// A ClockDifference is by how much a database's clock is ahead of this host's, to within an uncertainty.
type ClockDifference struct{ Ahead, Uncertainty time.Duration }

// Apart returns how far two differences are apart at least.
func (d ClockDifference) Apart(other ClockDifference) time.Duration {
	return max(0, (d.Ahead-other.Ahead).Abs()-d.Uncertainty-other.Uncertainty)
}

// ClockDifference reads the database's clock.
func (c *Connection) ClockDifference(ctx context.Context) (ClockDifference, error) {
	var micros int64
	began := time.Now()
	err := c.DB.GetContext(ctx, &micros, sqltext.Of(c.Dialect).Statements(dialect.Spring7, sqltext.Names{}).Clock)
	half := time.Since(began) / 2
	return ClockDifference{time.UnixMicro(micros).Sub(began.Add(half)), half}, err
}
