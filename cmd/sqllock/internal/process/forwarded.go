package process

import (
	"os"
	"os/signal"
)

// NotifyForwarded delivers the signals by which people and supervisors end a process, except those that it was
// started to ignore, as by nohup.
func NotifyForwarded(signals chan<- os.Signal) {
	for _, s := range ForwardedSignals {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
}
