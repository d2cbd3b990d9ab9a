package process

import (
	"os"
	"os/signal"
	"syscall"
)

// NotifyForwarded delivers the signals by which people and supervisors end a process, except SIGHUP and SIGINT if it was
// started to ignore them, as by nohup or in the background of a script. Go notes that of these two alone.
func NotifyForwarded(signals chan<- os.Signal) {
	for _, s := range ForwardedSignals {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
}

// CatchBrokenPipes makes a write to a standard output or error whose reader has gone fail, instead of killing this
// process. Children do not inherit that, as they would if the signal was ignored.
func CatchBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) } // the channel is never read

// LetNextKill stops what NotifyForwarded does, so that the next signal ends the process at once. SIGHUP does not: a
// shell repeats that of the kernel when the terminal is closed, which is no second request.
func LetNextKill(signals chan<- os.Signal) {
	if !signal.Ignored(syscall.SIGHUP) {
		// The channel is never read. signal.Ignore has a moment in which the signal kills, and children would inherit it.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	signal.Stop(signals)
}
