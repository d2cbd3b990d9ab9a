package notify

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// ListenThrough is Listen over connections that dial makes, with little patience.
func ListenThrough(ctx context.Context, dsn string, opts *Options, dial pgconn.DialFunc) (*Listener, error) {
	config, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	config.DialFunc = dial
	return listen(ctx, config, opts, patience{quiet: 50 * time.Millisecond, answer: time.Second})
}

// Topics returns how many topics somebody is subscribed to.
func (l *Listener) Topics() int {
	l.bells.mu.Lock()
	defer l.bells.mu.Unlock()
	return len(l.bells.byTopic)
}
