package exec

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
)

// signalsKept is how many signals wait for delivery at most.
const signalsKept = 16

// A relay delivers the signals of this process to the command while there is one. Without a
// command, they end the campaign, or stop this process.
type relay struct {
	interrupt context.CancelCauseFunc // ends the campaign
	suspend   func()                  // stops this process, and returns when it has been continued

	mu      sync.Mutex
	command chan<- os.Signal // or nil
}

// start delivers signals until the function that it returns is called.
func (r *relay) start() (stop func()) {
	signals, quit, done := make(chan os.Signal, signalsKept), make(chan struct{}), make(chan struct{})
	process.NotifyForwarded(signals)
	if !process.HasTerminal() {
		process.NotifyStops(signals)
	}
	go func() {
		defer close(done)
		for {
			select {
			case s := <-signals:
				if r.deliver(s) {
					process.LetNextKill(signals)
				}
			case <-quit:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(quit)
		<-done
	}
}

// redirect returns a channel that receives the signals for a command, until the function that
// it returns is called.
func (r *relay) redirect() (signals chan os.Signal, end func()) {
	signals = make(chan os.Signal, signalsKept)
	r.set(signals)
	return signals, func() { r.set(nil) }
}

func (r *relay) set(command chan<- os.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.command = command
}

// deliver delivers one signal. It reports whether the signal has ended a campaign without a
// command.
func (r *relay) deliver(s os.Signal) (ended bool) {
	// Not released before the campaign has ended: then no command begins.
	r.mu.Lock()
	defer r.mu.Unlock()
	number, _ := s.(syscall.Signal)
	switch {
	case r.command != nil:
		if s == os.Interrupt || s == syscall.SIGTERM {
			r.interrupt(signalled{number}) // there is no next term
		}
		select {
		case r.command <- s:
		default: // as the system drops what it cannot deliver
		}
	case process.IsStop(s):
		r.suspend()
	case process.IsContinue(s):
	default:
		r.interrupt(signalled{number})
		return true
	}
	return false
}
