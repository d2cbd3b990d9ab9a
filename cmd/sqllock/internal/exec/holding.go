package exec

import (
	"context"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
)

// A holding is an acquired lock, with its registry and connection.
type holding struct {
	connection *connect.Connection
	registry   *sqllock.Registry
	lease      *sqllock.Lease
}

// left returns how long the lease still lasts.
func (h *holding) left() time.Duration {
	for _, held := range h.registry.Held() {
		return time.Until(held.Deadline)
	}
	return 0
}

// close closes the registry and the connection after the lease was unlocked.
func (h *holding) close(ctx context.Context) {
	// If Unlock failed, this tries again to delete the row, which expires in any case.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_, _ = answered(ctx, 0, func() (struct{}, error) { return struct{}{}, h.registry.Close(ctx) })
	_ = h.connection.Close()
}
