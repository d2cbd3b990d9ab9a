package contender

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/sqllock/sqllock/dev/interop/spring/javaclient"
)

// jvms are the Java processes, one for each generation of Spring. They run for the whole run,
// because Java code gets faster while it runs.
var jvms struct {
	sync.Mutex
	running map[javaclient.Generation]*javaclient.JVM
}

var errSpring = errors.New("pairs that threw an exception")

// java returns the process of a generation, and starts it in the first call.
func java(ctx context.Context, generation javaclient.Generation) (*javaclient.JVM, error) {
	jvms.Lock()
	defer jvms.Unlock()
	if jvm := jvms.running[generation]; jvm != nil {
		return jvm, nil
	}
	jvm, err := newJava(ctx, generation)
	if err != nil {
		return nil, err
	}
	if jvms.running == nil {
		jvms.running = make(map[javaclient.Generation]*javaclient.JVM)
	}
	jvms.running[generation] = jvm
	return jvm, nil
}

// newJava starts a process for the caller alone.
func newJava(ctx context.Context, generation javaclient.Generation) (*javaclient.JVM, error) {
	program, err := javaclient.Build(ctx, generation)
	if errors.Is(err, javaclient.ErrMissing) {
		return nil, errors.Join(ErrMissing, err)
	}
	if err != nil {
		return nil, err
	}
	return program.Start(ctx, &javaclient.Options{JVM: []string{"-Xmx1g"}})
}

func javaVersion(ctx context.Context, generation javaclient.Generation) (string, error) {
	jvm, err := java(ctx, generation)
	if err != nil {
		return "", err
	}
	return jvm.Version(ctx)
}

// End ends the processes that contenders keep between sessions.
func End() error {
	jvms.Lock()
	defer jvms.Unlock()
	var errs []error
	for _, jvm := range jvms.running {
		errs = append(errs, jvm.Close())
	}
	clear(jvms.running)
	return errors.Join(errs...)
}

var threads atomic.Int64

func newThread() string { return "thread" + strconv.FormatInt(threads.Add(1), 10) }
