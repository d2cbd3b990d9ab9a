package exec

import (
	"context"
	"os"
	"os/signal"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
)

// run acquires the lock, runs the command and releases the lock. It returns nil if the
// command ended with 0, else an exit.Error or the reason why the command did not run.
func (x *execution) run(ctx context.Context) error {
	// Report a mistyped name now, not after hours of waiting.
	if err := x.resolve(); err != nil {
		return err
	}
	defer process.ReapOrphans()()
	signals := make(chan os.Signal, 16)
	notifyForwarded(signals)
	defer signal.Stop(signals)

	ctx, interrupt := context.WithCancelCause(ctx)
	defer interrupt(nil)
	h, err := x.acquireUnlessSignalled(ctx, interrupt, signals)
	if err != nil {
		return x.explain(err)
	}
	defer h.close(ctx)
	return x.supervise(h, signals) //nolint:contextcheck // the lease has the context
}

// notifyForwarded delivers the signals that exec forwards, except those that it was
// started to ignore, as by nohup.
func notifyForwarded(signals chan<- os.Signal) {
	for _, s := range process.ForwardedSignals {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
}
