package main

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
)

// A troupe is the processes of a demo.
type troupe struct {
	workers []*demoWorker
	events  chan demoEvent
	leaving chan struct{} // closed when nobody receives events any more
}

// A demoWorker is one process, seen from its parent.
type demoWorker struct {
	number int
	child  *child
	orders io.WriteCloser
	stderr bytes.Buffer // may be read once the child has ended
	killed bool         // by the demo, on purpose
}

// startTroupe starts all workers, or none.
func (d *demo) startTroupe(s *stage) (*troupe, error) {
	t := &troupe{events: make(chan demoEvent), leaving: make(chan struct{})}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	for number := 1; number <= d.workers; number++ {
		w := &demoWorker{number: number}
		if err := t.start(w, d.workerCommand(program, s, w)); err != nil {
			t.dismiss()
			return nil, fmt.Errorf("start worker %d: %w", number, err)
		}
		t.workers = append(t.workers, w)
	}
	return t, nil
}

func (d *demo) workerCommand(program string, s *stage, w *demoWorker) *exec.Cmd {
	//nolint:noctx // dismiss ends it
	cmd := exec.Command(program, "demo-worker",
		"--number", strconv.Itoa(w.number), "--prefix", s.g.prefix, "--region", s.g.region,
		"--ttl", d.ttl.String(), "--counter", s.counter(), "--witness", s.witness(),
		"--plain-keys="+strconv.FormatBool(s.g.plainKeys), "--without-lock="+strconv.FormatBool(d.withoutLock))
	// Everybody can see arguments; there may be a password in the DSN.
	cmd.Env = append(os.Environ(), dsnVariable+"="+s.g.dsn)
	cmd.Stderr = &w.stderr
	return cmd
}

func (t *troupe) start(w *demoWorker, cmd *exec.Cmd) error {
	// Not cmd.StdoutPipe, which is closed when the process ends, and with it
	// what the process said last.
	output, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = theirs.Close() }()
	cmd.Stdout = theirs
	if w.orders, err = cmd.StdinPipe(); err != nil {
		return errors.Join(err, output.Close())
	}
	// In groups of their own they do not get the terminal's interrupt: the
	// demo alone decides how it ends.
	if w.child, err = startChild(cmd, false, true); err != nil {
		return errors.Join(err, output.Close())
	}
	go t.listen(w, output)
	return nil
}

// listen passes on what a worker tells, and at last that it has ended.
func (t *troupe) listen(w *demoWorker, output io.ReadCloser) {
	defer func() { _ = output.Close() }()
	decoder := json.NewDecoder(output)
	for {
		e := demoEvent{worker: w}
		if decoder.Decode(&e) != nil {
			break // the end of the output, or nonsense, after which the end is near
		}
		t.pass(e)
	}
	<-w.child.ended
	t.pass(demoEvent{Kind: demoEnded, At: time.Now(), worker: w})
}

func (t *troupe) pass(e demoEvent) {
	select {
	case t.events <- e:
	case <-t.leaving:
	}
}

// order tells a worker what to do. If it cannot be told, it has ended or is
// about to, of which it will be heard.
func (w *demoWorker) order(order string) { _, _ = io.WriteString(w.orders, order+"\n") }

// kill kills a worker as kill -9 does, and returns when it is gone.
func (w *demoWorker) kill() {
	w.killed = true
	w.child.kill()
	<-w.child.ended
}

// failure says why a worker that was not killed on purpose has ended.
func (w *demoWorker) failure() error {
	said := strings.TrimSpace(w.stderr.String())
	if said == "" {
		said = w.child.state.String()
	}
	code := exitFailure
	if c := w.child.exitCode(); c == exitDatabase {
		code = c
	}
	return &exitError{code, fmt.Errorf("worker %d (process %d) ended unexpectedly: %s", w.number, w.child.cmd.Process.Pid, strings.TrimPrefix(said, "sqllock: "))}
}

// dismiss ends all workers and waits until they are gone.
func (t *troupe) dismiss() {
	close(t.leaving)
	for _, w := range t.workers {
		_ = w.orders.Close() // they stop when there are no more orders
	}
	for _, w := range t.workers {
		w.child.killAfter(3 * time.Second)
	}
}
