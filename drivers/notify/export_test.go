package notify

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// ListenThrough is Listen over connections that dial makes, with short timeouts.
func ListenThrough(ctx context.Context, dsn string, opts *Options, dial pgconn.DialFunc) (*Listener, error) {
	config, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	config.DialFunc = dial
	return listen(ctx, config, opts, timeouts{idle: 50 * time.Millisecond, reply: time.Second})
}

// Topics returns the number of topics that have subscribers.
func (l *Listener) Topics() int {
	l.subscriptions.mu.Lock()
	defer l.subscriptions.mu.Unlock()
	return len(l.subscriptions.byTopic)
}
