package trial

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	children "github.com/sqllock/sqllock/cmd/sqllock/internal/process"
)

// A process is one worker, as seen by its parent.
type process struct {
	number int
	child  *children.Child
	orders io.WriteCloser
	killed bool // by its parent, as planned
}

// workerCommand returns the command of a worker, which prints errors where this process does.
func workerCommand(program string, o *options, flags *connect.Flags, directory string) *exec.Cmd {
	//nolint:noctx // stop ends it
	cmd := exec.Command(program, workerName, "--prefix", flags.Prefix, "--region", flags.Region, "--ttl", o.ttl.String(), "--directory", directory,
		"--plain-keys="+strconv.FormatBool(flags.PlainKeys), "--unverified="+strconv.FormatBool(flags.Unverified),
		"--without-lock="+strconv.FormatBool(o.withoutLock), "--verify="+strconv.FormatBool(o.verify))
	// Not an argument: other users can see arguments, and the DSN may have a password.
	cmd.Env = append(os.Environ(), connect.DSNVariable+"="+flags.DSN)
	cmd.Stderr = os.Stderr
	return cmd
}

// startWorker starts a worker. Its events are passed to deliver, at last that it has ended.
func startWorker(number int, cmd *exec.Cmd, deliver func(event)) (p *process, err error) {
	p = &process{number: number}
	// Not cmd.StdoutPipe, which is closed when the process ends: the last events would
	// be lost.
	output, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirs.Close() }()
	cmd.Stdout = theirs
	if p.orders, err = cmd.StdinPipe(); err == nil {
		// In their own groups, workers do not get the terminal's interrupt: the parent
		// handles it.
		p.child, err = children.Start(cmd, false, true)
	}
	if err != nil {
		return nil, errors.Join(err, output.Close())
	}
	go func() {
		decoder, e := json.NewDecoder(output), event{}
		// An error is the end of the output, or no event; the worker is about to end.
		for decoder.Decode(&e) == nil {
			e.from = p
			deliver(e)
			e = event{}
		}
		_ = output.Close()
		<-p.child.Ended
		deliver(event{Kind: ended, from: p})
	}()
	return p, nil
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

// failure returns the error of a worker that ended unexpectedly. The worker has printed its reason.
func (p *process) failure() error {
	code := exit.Failure
	if p.child.ExitCode() == exit.Database {
		code = exit.Database
	}
	return &exit.Error{Code: code, Err: fmt.Errorf("worker %d (process %d) ended unexpectedly: %v", p.number, p.child.Cmd.Process.Pid, p.child.State)}
}
