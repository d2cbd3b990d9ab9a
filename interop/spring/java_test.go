//go:build interop

package spring_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sqllock/sqllock/internal/test/dbtest/server"
	"github.com/sqllock/sqllock/interop/spring/javaclient"
)

// builds has the program of each generation, built once.
var builds = map[javaclient.Generation]func() (*javaclient.Program, error){
	javaclient.Spring6: build(javaclient.Spring6),
	javaclient.Spring7: build(javaclient.Spring7),
}

func build(generation javaclient.Generation) func() (*javaclient.Program, error) {
	return sync.OnceValues(func() (*javaclient.Program, error) {
		return javaclient.Build(context.Background(), generation) // it is all tests', not the first one's
	})
}

// missing is why there is no Java program, once a test has been skipped for that.
var missing atomic.Pointer[string]

// program returns the Java program. Where it cannot be had, the test is skipped, or
// fails if Spring is required.
func program(t *testing.T, generation javaclient.Generation) *javaclient.Program {
	t.Helper()
	p, err := builds[generation]()
	if !errors.Is(err, javaclient.ErrMissing) {
		must(t, err)
		return p
	}
	required, unknown := server.Required(server.Spring)
	must(t, unknown)
	if required {
		t.Fatalf("%v; Spring must be tested (%s)", err, server.RequireVariable)
	}
	reason := err.Error()
	missing.Store(&reason)
	t.Skipf("SKIPPED, NOT TESTED: %v", err)
	return nil
}

// sayMissing tells loudly that nothing has been shown: passed alone would mislead.
func sayMissing() {
	if reason := missing.Load(); reason != nil {
		rule := strings.Repeat("*", 78)
		fmt.Fprintf(os.Stderr, "%s\n*** NOT TESTED: that sqllock and Spring Integration share a table\n***     %s\n%s\n", rule, *reason, rule)
	}
}

// start starts a JVM of the test's own.
func start(t *testing.T, generation javaclient.Generation, opts *javaclient.Options) *javaclient.JVM {
	t.Helper()
	// Not the test's context, which ends before the cleanups.
	j, err := program(t, generation).Start(context.WithoutCancel(t.Context()), opts)
	must(t, err)
	t.Cleanup(j.Kill)
	return j
}

// jvms are shared by the tests that need nothing special of theirs.
var jvms = struct {
	sync.Mutex
	running map[javaclient.Generation]*javaclient.JVM
}{running: make(map[javaclient.Generation]*javaclient.JVM)}

// shared returns the JVM of a generation that all tests share: most of what a test
// would wait for is its start.
func shared(t *testing.T, generation javaclient.Generation) *javaclient.JVM {
	t.Helper()
	p := program(t, generation)
	jvms.Lock()
	defer jvms.Unlock()
	if j := jvms.running[generation]; j != nil {
		return j
	}
	j, err := p.Start(context.WithoutCancel(t.Context()), nil)
	must(t, err)
	jvms.running[generation] = j
	return j
}

func stopJVMs() (errs []error) {
	jvms.Lock()
	defer jvms.Unlock()
	for _, j := range jvms.running {
		errs = append(errs, j.Close())
	}
	return errs
}
