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

	"github.com/sqllock/sqllock/dev/interop/spring/javaclient"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// builds are the programs of the generations, each built once.
var builds = map[javaclient.Generation]func() (*javaclient.Program, error){
	javaclient.Spring6:  build(javaclient.Spring6),
	javaclient.Spring70: build(javaclient.Spring70),
	javaclient.Spring7:  build(javaclient.Spring7),
}

func build(generation javaclient.Generation) func() (*javaclient.Program, error) {
	return sync.OnceValues(func() (*javaclient.Program, error) {
		return javaclient.Build(context.Background(), generation) // for all tests, so not the context of the first one
	})
}

// missing is the reason why the Java program is missing, if a test was skipped.
var missing atomic.Pointer[string]

// program returns the Java program. If it cannot be built, the test is skipped, or fails if
// Spring is required.
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

// sayMissing prints that nothing was tested, since "ok" alone would be misleading.
func sayMissing() {
	if reason := missing.Load(); reason != nil {
		rule := strings.Repeat("*", 78)
		fmt.Fprintf(os.Stderr, "%s\n*** NOT TESTED: that sqllock and Spring Integration share a table\n***     %s\n%s\n", rule, *reason, rule)
	}
}

// start starts a JVM for the test.
func start(t *testing.T, generation javaclient.Generation, opts *javaclient.Options) *javaclient.JVM {
	t.Helper()
	// Not the test's context, which ends before the cleanups.
	j := check.Value(program(t, generation).Start(context.WithoutCancel(t.Context()), opts))(t)
	t.Cleanup(j.Kill)
	return j
}

// A kind of JVM is what tests can share.
type kind struct {
	generation javaclient.Generation
	zone       string // "" is that of the machine
}

// jvms are shared by the tests that need no special options.
var jvms = struct {
	sync.Mutex
	running map[kind]*javaclient.JVM
}{running: make(map[kind]*javaclient.JVM)}

// shared returns the shared JVM of a generation: starting a JVM takes most of a test's time.
func shared(t *testing.T, generation javaclient.Generation) *javaclient.JVM {
	t.Helper()
	return sharedIn(t, generation, "")
}

// sharedIn returns the shared JVM of a generation in a time zone.
func sharedIn(t *testing.T, generation javaclient.Generation, zone string) *javaclient.JVM {
	t.Helper()
	p := program(t, generation)
	jvms.Lock()
	defer jvms.Unlock()
	this := kind{generation, zone}
	if j := jvms.running[this]; j != nil {
		return j
	}
	j := check.Value(p.Start(context.WithoutCancel(t.Context()), &javaclient.Options{Zone: zone}))(t)
	jvms.running[this] = j
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
