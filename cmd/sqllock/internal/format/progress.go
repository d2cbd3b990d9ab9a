package format

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progressAfter is how long work may take before a terminal shows that it goes on.
const progressAfter = time.Second

// Progress shows on a terminal, once a second, what is done and for how long already. stop
// erases the line, and returns when nothing more will be written. Anything but a terminal gets nothing.
func Progress(w io.Writer, what string) (stop func()) {
	if _, ok := TerminalWidth(w); !ok {
		return func() {}
	}
	return progress(w, what)
}

func progress(w io.Writer, what string) (stop func()) {
	began, done := time.Now(), make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(progressAfter)
		defer tick.Stop()
		for shown := false; ; shown = true {
			select {
			case <-tick.C:
				_, _ = fmt.Fprintf(w, "\r%s: %s\x1b[K", what, time.Since(began).Round(time.Second))
			case <-done:
				if shown {
					_, _ = io.WriteString(w, "\r\x1b[K")
				}
				return
			}
		}
	})
	return sync.OnceFunc(func() {
		close(done)
		running.Wait()
	})
}
