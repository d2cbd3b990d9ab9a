package notify

import (
	"context"
	"time"
)

// ListenImpatiently is Listen with a short idle time, and a limit for the reply to a ping.
func ListenImpatiently(ctx context.Context, dsn string, reply time.Duration, opts *Options) (*Listener, error) {
	config, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	return listen(ctx, config, opts, timeouts{idle: 50 * time.Millisecond, reply: reply})
}

// Topics returns the number of topics that have subscribers.
func (l *Listener) Topics() int {
	l.subscriptions.mu.Lock()
	defer l.subscriptions.mu.Unlock()
	return len(l.subscriptions.byTopic)
}
