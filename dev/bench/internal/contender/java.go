package contender

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/sqllock/sqllock/dev/interop/spring/javaclient"
)

// jvm is the Java process. It runs for the whole run, because Java code gets faster while it runs.
var jvm struct {
	sync.Mutex
	running *javaclient.JVM
}

var errSpring = errors.New("pairs that threw an exception")

// java returns the process, and starts it in the first call.
func java(ctx context.Context) (*javaclient.JVM, error) {
	jvm.Lock()
	defer jvm.Unlock()
	if jvm.running != nil {
		return jvm.running, nil
	}
	started, err := newJava(ctx)
	if err == nil {
		jvm.running = started
	}
	return started, err
}

// newJava starts a process for the caller alone.
func newJava(ctx context.Context) (*javaclient.JVM, error) {
	program, err := javaclient.Build(ctx, javaclient.Spring7)
	if errors.Is(err, javaclient.ErrMissing) {
		return nil, errors.Join(ErrMissing, err)
	}
	if err != nil {
		return nil, err
	}
	return program.Start(ctx, &javaclient.Options{JVM: []string{"-Xmx1g"}})
}

func javaVersion(ctx context.Context) (string, error) {
	running, err := java(ctx)
	if err != nil {
		return "", err
	}
	return running.Version(ctx)
}

// End ends the process that contenders keep between sessions.
func End() error {
	jvm.Lock()
	defer jvm.Unlock()
	if jvm.running == nil {
		return nil
	}
	defer func() { jvm.running = nil }()
	return jvm.running.Close()
}

var threads atomic.Int64

func newThread() string { return "thread" + strconv.FormatInt(threads.Add(1), 10) }
