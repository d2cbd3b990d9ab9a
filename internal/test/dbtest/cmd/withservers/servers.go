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

	mu      sync.Mutex // for those that start at the same time
	running []*server.Server
	dsns    map[string]string // of the running and of those that variables lead to
	missing map[string]error  // why there is no such server
}

// errLeftOut is why a server is missing that the user did not want.
var errLeftOut = errors.New("left out by " + server.ServersVariable)

// startServers starts what is not there yet. The fleet is to be stopped even
// when an error comes with it. Only a server that is required is an error when
// it is missing.
func startServers(ctx context.Context) (*fleet, error) {
	f := &fleet{dsns: make(map[string]string), missing: make(map[string]error)}
	var err error
	if f.scratch, err = server.NewScratch(); err != nil {
		return f, err
	}
	for _, stage := range stages {
		known := maps.Clone(f.dsns)
		var all sync.WaitGroup
		for _, s := range stage {
			all.Go(func() { f.add(ctx, s, known) })
		}
		all.Wait()
	}
	return f, f.requirements()
}

// add starts one server, unless the user has it or does without it.
func (f *fleet) add(ctx context.Context, s starter, known map[string]string) {
	kind := server.KindOf(s.name)
	if dsn := os.Getenv(kind.Variable); dsn != "" {
		say("using the %s of %s", kind.Title, kind.Variable)
		f.put(s.name, nil, dsn, nil)
		return
	}
	if wanted, err := server.Wanted(s.name); err != nil || !wanted {
		f.put(s.name, nil, "", errors.Join(errLeftOut, err))
		return
	}
	began := time.Now()
	started, err := s.start(ctx, filepath.Join(f.scratch.Dir, s.name), known)
	if err != nil {
		f.put(s.name, nil, "", err)
		return
	}
	say("%s is ready after %v: %s", kind.Title, time.Since(began).Round(time.Millisecond), started.DSN())
	f.put(s.name, started, started.DSN(), nil)
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

// requirements is the error for what is missing and must not be.
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

// environment is what tells the command where the servers are, and where there is
// room for more.
func (f *fleet) environment() []string {
	variables := []string{server.ScratchVariable + "=" + f.scratch.Dir}
	for name, dsn := range f.dsns {
		variables = append(variables, server.KindOf(name).Variable+"="+dsn)
	}
	return variables
}

// stop ends the servers and removes their data. What goes wrong is only told:
// the command's exit code is what counts.
func (f *fleet) stop() {
	troubles := make([]error, len(f.running))
	var all sync.WaitGroup
	for i, s := range f.running {
		all.Go(func() { troubles[i] = s.Stop() })
	}
	all.Wait()
	trouble := errors.Join(troubles...)
	if f.scratch != nil {
		trouble = errors.Join(trouble, f.scratch.Remove())
	}
	if trouble != nil {
		say("%v", trouble)
	}
}
