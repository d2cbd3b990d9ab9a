package exec

import (
	"io"
	"strings"
	"sync"
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
)

// A printer prints messages in the background: a write to a full pipe, or to a terminal after Ctrl-S, blocks.
// Neither a renewal nor the end of a command may wait for that.
type printer struct {
	mu       sync.Mutex
	messages []string      // those that are to be printed
	printed  chan struct{} // closed when all are printed; nil if they are
}

const (
	// messagesKept is how many messages wait at most: the last ones.
	messagesKept = 100
	// flushLimit is how long flush waits at most.
	flushLimit = time.Second
)

// print has a message printed, and does not wait for that.
func (p *printer) print(w io.Writer, message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.messages = append(p.messages, message)
	p.messages = p.messages[max(0, len(p.messages)-messagesKept):]
	if p.printed == nil {
		p.printed = make(chan struct{})
		go p.run(w)
	}
}

// run prints messages until there are none.
func (p *printer) run(w io.Writer) {
	for message, ok := p.next(); ok; message, ok = p.next() {
		_, _ = io.WriteString(w, message) // an error here cannot be reported anywhere
	}
}

func (p *printer) next() (message string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.messages) == 0 {
		close(p.printed)
		p.printed = nil
		return "", false
	}
	message, p.messages = p.messages[0], p.messages[1:]
	return message, true
}

// Report is [exit.Report] for the error with which exec, lead or acquire ends. If the reader of w stalls, it gives up after
// flushLimit.
func Report(w io.Writer, err error, hint string) {
	var text strings.Builder
	exit.Report(&text, err, hint)
	var p printer
	p.print(w, text.String())
	p.flush()
}

// flush waits until all messages are printed, for flushLimit at most.
func (p *printer) flush() {
	p.mu.Lock()
	printed := p.printed
	p.mu.Unlock()
	if printed == nil {
		return
	}
	select {
	case <-printed:
	case <-time.After(flushLimit):
	}
}
