package javaclient

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Options are the settings of a [JVM]. A zero field means the default.
type Options struct {
	// JVM are arguments for java, such as -Xmx1g. Without any, the JVM is configured to
	// start fast, not to run fast.
	JVM []string
	// Zone is the default time zone, such as Asia/Kathmandu. "" means that of the machine.
	Zone string
	// Gap, if not zero, is the instant (a whole second) at which the clocks of the default
	// time zone go forward by an hour, as in spring.
	Gap time.Time
}

// A JVM is a running Java program. All methods are safe for concurrent use.
type JVM struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer // can be read when the process has ended
	ended  chan struct{}
	end    error // the reason, when it has ended

	mu      sync.Mutex
	stdin   io.WriteCloser
	next    int
	pending map[string]chan answer
}

// Start starts a JVM, which ends with ctx, with [JVM.Close], or when this process
// does. opts may be nil.
func (p *Program) Start(ctx context.Context, opts *Options) (*JVM, error) {
	j := &JVM{ended: make(chan struct{}), pending: make(map[string]chan answer)}
	//nolint:gosec // the arguments are the caller's own
	j.cmd = exec.CommandContext(ctx, "java", p.arguments(opts)...)
	j.cmd.Stderr = &j.stderr
	j.cmd.WaitDelay = 5 * time.Second
	var err error
	if j.stdin, err = j.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := j.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := j.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start Java: %w", err)
	}
	go j.read(stdout)
	return j, nil
}

func (p *Program) arguments(opts *Options) (arguments []string) {
	if opts == nil {
		opts = &Options{}
	}
	arguments = opts.JVM
	if len(arguments) == 0 {
		arguments = []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"}
	}
	arguments = slices.Clip(arguments) // the caller's own
	if opts.Zone != "" {
		arguments = append(arguments, "-Duser.timezone="+opts.Zone)
	}
	if !opts.Gap.IsZero() {
		// Required by the Java class GapZone.
		arguments = append(arguments, "--add-opens", "java.base/java.time.zone=ALL-UNNAMED",
			"--add-opens", "java.base/sun.util.calendar=ALL-UNNAMED")
	}
	path := filepath.Join(p.Dir, "classes") + string(os.PathListSeparator) + filepath.Join(p.Dir, "lib", "*")
	arguments = append(arguments, "-cp", path, "sqllock.Main")
	if !opts.Gap.IsZero() {
		arguments = append(arguments, "gap="+opts.Gap.UTC().Format(time.RFC3339))
	}
	return arguments
}

// read delivers answers to the callers until there are no more.
func (j *JVM) read(stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 16<<20) // a thousand keys are one answer
	var err error
	for err == nil && lines.Scan() {
		var number string
		var a answer
		if number, a, err = parseAnswer(lines.Text()); err == nil {
			j.deliver(number, a)
		}
	}
	err = errors.Join(err, lines.Err())
	if err != nil {
		_ = j.cmd.Process.Kill() // there can be no further answers
	}
	j.end = errors.Join(err, j.cmd.Wait())
	close(j.ended)
}

func (j *JVM) deliver(number string, a answer) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if waiting, ok := j.pending[number]; ok {
		delete(j.pending, number)
		waiting <- a // has room for one
	}
}

// call sends a request and waits for its answer. If ctx ends first, the request continues:
// Java's lock() cannot be interrupted.
func (j *JVM) call(ctx context.Context, client, thread, command string, arguments ...string) ([]string, error) {
	waiting, err := j.send(client, thread, command, arguments)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", command, err)
	}
	select {
	case a := <-waiting:
		return a.values, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w", command, context.Cause(ctx))
	case <-j.ended:
		return nil, fmt.Errorf("%s: %w", command, j.died())
	}
}

func (j *JVM) send(client, thread, command string, arguments []string) (<-chan answer, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.next++
	number := strconv.Itoa(j.next)
	waiting := make(chan answer, 1)
	j.pending[number] = waiting
	line := encodeLine(append([]string{number, client, thread, command}, arguments...)...)
	_, err := io.WriteString(j.stdin, line+"\n")
	return waiting, err
}

var errEnded = errors.New("the Java process has ended")

func (j *JVM) died() error {
	return fmt.Errorf("%w: %w; stderr: %s", errEnded, j.end, j.stderr.String())
}

// Version returns the version of Spring Integration.
func (j *JVM) Version(ctx context.Context) (string, error) {
	values, err := j.call(ctx, "", "", "version")
	if err != nil {
		return "", err
	}
	return values[0], nil
}

// LockKeys returns Spring's LOCK_KEY of each key.
func (j *JVM) LockKeys(ctx context.Context, keys ...string) ([]string, error) {
	lockKeys, err := j.call(ctx, "", "", "key", keys...)
	if err == nil && len(lockKeys) != len(keys) {
		err = fmt.Errorf("%w: %d for %d keys", errProtocol, len(lockKeys), len(keys))
	}
	return lockKeys, err
}

// Kill ends the process as kill -9 does, and returns when it has ended.
func (j *JVM) Kill() {
	_ = j.cmd.Process.Kill() // an error means that it has ended
	<-j.ended
}

// Close ends the process without releasing any locks, and waits until it has ended.
func (j *JVM) Close() error {
	j.mu.Lock()
	err := j.stdin.Close()
	j.mu.Unlock()
	<-j.ended
	return errors.Join(err, j.end)
}
