package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// A fleet is the servers of this run.
type fleet struct {
	scratch *server.Scratch

	mu      sync.Mutex // guards servers that start concurrently
	running []*server.Server
	unwatch []func()          // end the supervision of PgBouncer
	dsns    map[string]string // of the servers that run, and of those in variables
	missing map[string]error  // why a server is missing
}

// errLeftOut is the reason for a server that is not wanted.
var errLeftOut = errors.New("left out by " + server.ServersVariable + ", or part of the full run alone (" + server.AllVariable + "=1)")

// startServers starts the servers whose variables are not set. The caller must stop the fleet
// even if there is an error. A missing server is an error only if it is required.
func startServers(ctx context.Context) (*fleet, error) {
	f := &fleet{dsns: make(map[string]string), missing: make(map[string]error)}
	var err error
	if f.scratch, err = server.NewScratch(); err != nil {
		return f, err
	}
	for _, behind := range []bool{false, true} { // first the servers that others need
		known := maps.Clone(f.dsns)
		var all sync.WaitGroup
		for _, kind := range server.Kinds {
			if kind.Start != nil && (kind.Behind != "") == behind {
				all.Go(func() { f.add(ctx, kind, known) })
			}
		}
		all.Wait()
	}
	return f, f.requirements()
}

// add starts one server, unless its variable is set or the user has left it out.
func (f *fleet) add(ctx context.Context, kind server.Kind, known map[string]string) {
	if dsn := os.Getenv(kind.Variable); dsn != "" {
		say("using the %s of %s", kind.Title, kind.Variable)
		f.put(kind.Name, nil, dsn, nil)
		return
	}
	if wanted, err := server.Wanted(kind.Name); err != nil || !wanted {
		f.put(kind.Name, nil, "", errors.Join(errLeftOut, err))
		return
	}
	behind, ok := known[kind.Behind]
	if kind.Behind != "" && !ok {
		f.put(kind.Name, nil, "", fmt.Errorf("it needs %s: %w", kind.Behind, server.ErrMissing))
		return
	}
	began := time.Now()
	started, err := kind.Start(ctx, filepath.Join(f.scratch.Dir, kind.Name), behind)
	if err != nil {
		f.put(kind.Name, nil, "", err)
		return
	}
	say("%s is ready after %v: %s", kind.Title, time.Since(began).Round(time.Millisecond), started.DSN())
	f.put(kind.Name, started, started.DSN(), nil)
	if kind.Behind != "" {
		unwatch := started.Supervise(ctx, func(why error) { say("it is started again: %v", why) })
		f.mu.Lock()
		f.unwatch = append(f.unwatch, unwatch)
		f.mu.Unlock()
	}
}

func (f *fleet) put(name string, running *server.Server, dsn string, missing error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if missing != nil {
		f.missing[name] = missing
		return
	}
	f.dsns[name] = dsn
	if running != nil {
		f.running = append(f.running, running)
	}
}

// requirements returns an error for the missing servers that are required.
func (f *fleet) requirements() error {
	var lacking error
	for name, missing := range f.missing {
		required, err := server.Required(name)
		if required {
			err = fmt.Errorf("no %s (%s), which %s or CI=true requires: %w",
				server.KindOf(name).Title, name, server.RequireVariable, missing)
		}
		lacking = errors.Join(lacking, err)
	}
	return lacking
}

// environment returns the variables for the command: the servers, and the directory for data.
func (f *fleet) environment() []string {
	variables := []string{server.ScratchVariable + "=" + f.scratch.Dir}
	for name, dsn := range f.dsns {
		variables = append(variables, server.KindOf(name).Variable+"="+dsn)
	}
	return variables
}

// stop stops the servers and removes their data. It only prints errors, since the exit code is
// that of the command.
func (f *fleet) stop() {
	for _, unwatch := range f.unwatch {
		unwatch()
	}
	errs := make([]error, len(f.running))
	var all sync.WaitGroup
	for i, s := range f.running {
		all.Go(func() { errs[i] = s.Stop() })
	}
	all.Wait()
	err := errors.Join(errs...)
	if f.scratch != nil {
		err = errors.Join(err, f.scratch.Remove())
	}
	if err != nil {
		say("%v", err)
	}
}

// boxMissing prints in a box what is not tested, so that this is not overlooked in a green run.
func (f *fleet) boxMissing() {
	if len(f.missing) == 0 {
		return
	}
	const rule = "******************************************************************************"
	say(rule)
	for _, kind := range server.Kinds {
		if err := f.missing[kind.Name]; err != nil {
			say("*** NO %s (%s): ITS TESTS ARE SKIPPED", kind.Title, kind.Name)
			say("***     %v", err)
			say("***     set %s to use a server of your own", kind.Variable)
		}
	}
	say(rule)
}
