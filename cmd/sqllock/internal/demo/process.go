package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	children "github.com/sqllock/sqllock/cmd/sqllock/internal/process"
)

// workers are the processes of a demo, as seen by their parent.
type workers struct {
	all     []*process
	events  chan event
	closing chan struct{} // closed when events are no longer received
}

// A process is one worker.
type process struct {
	number int
	child  *children.Child
	orders io.WriteCloser
	stderr bytes.Buffer // may be read after the child has ended
	killed bool         // by the demo, as planned
}

func newWorkers() *workers { return &workers{events: make(chan event), closing: make(chan struct{})} }

// startWorkers starts all workers. After an error none is running.
func startWorkers(o *options, s *workspace) (*workers, error) {
	w := newWorkers()
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	for number := 1; number <= o.workers; number++ {
		//nolint:noctx // stop ends it
		cmd := exec.Command(program, workerName,
			"--number", strconv.Itoa(number), "--prefix", s.flags.Prefix, "--region", s.flags.Region,
			"--ttl", o.ttl.String(), "--counter", s.counter(), "--guard", s.guardFile(),
			"--plain-keys="+strconv.FormatBool(s.flags.PlainKeys), "--without-lock="+strconv.FormatBool(o.withoutLock))
		// Not an argument: other users can see arguments, and the DSN may have a password.
		cmd.Env = append(os.Environ(), connect.DSNVariable+"="+s.flags.DSN)
		if err := w.start(&process{number: number}, cmd); err != nil {
			w.stop()
			return nil, fmt.Errorf("start worker %d: %w", number, err)
		}
	}
	return w, nil
}

func (w *workers) start(p *process, cmd *exec.Cmd) error {
	// Not cmd.StdoutPipe, which is closed when the process ends: the last events would
	// be lost.
	output, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = theirs.Close() }()
	cmd.Stdout, cmd.Stderr = theirs, &p.stderr
	if p.orders, err = cmd.StdinPipe(); err != nil {
		return errors.Join(err, output.Close())
	}
	// In their own groups, workers do not get the terminal's interrupt: the parent
	// handles it.
	if p.child, err = children.Start(cmd, false, true); err != nil {
		return errors.Join(err, output.Close())
	}
	w.all = append(w.all, p)
	go w.receive(p, output)
	return nil
}

// receive delivers the events of a worker, and at last that it has ended.
func (w *workers) receive(p *process, output io.ReadCloser) {
	defer func() { _ = output.Close() }()
	decoder := json.NewDecoder(output)
	for {
		e := event{worker: p.number}
		if decoder.Decode(&e) != nil {
			break // the end of the output, or no event; the worker is about to end
		}
		w.deliver(e)
	}
	<-p.child.Ended
	w.deliver(event{Kind: ended, worker: p.number})
}

func (w *workers) deliver(e event) {
	select {
	case w.events <- e:
	case <-w.closing:
	}
}

// order sends an order to a worker. Errors are ignored: if the worker has ended, there
// is an event of that.
func (p *process) order(order string) { _, _ = io.WriteString(p.orders, order+"\n") }

// kill kills a worker as kill -9 does, and returns when it has ended.
func (p *process) kill() {
	p.killed = true
	p.child.Kill()
	<-p.child.Ended
}

// failure returns the error of a worker that ended unexpectedly.
func (p *process) failure() error {
	reason := strings.TrimSpace(p.stderr.String())
	if reason == "" {
		reason = p.child.State.String()
	}
	code := exit.Failure
	if c := p.child.ExitCode(); c == exit.Database {
		code = c
	}
	return &exit.Error{Code: code, Err: fmt.Errorf("worker %d (process %d) ended unexpectedly: %s",
		p.number, p.child.Cmd.Process.Pid, strings.TrimPrefix(reason, "sqllock: "))}
}

// stop ends all workers, and returns when they have ended.
func (w *workers) stop() {
	close(w.closing)
	for _, p := range w.all {
		_ = p.orders.Close() // they stop at the end of their orders
	}
	for _, p := range w.all {
		p.child.KillAfter(3 * time.Second)
	}
}
