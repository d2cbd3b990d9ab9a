package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sqllock/sqllock/internal/dbtest/server"
)

// kinds are the servers that tests want, with the variables that lead there.
var kinds = []struct {
	name, variable string
	start          func(context.Context, string) (*server.Server, error)
}{
	{"PostgreSQL", server.PostgresVariable, server.StartPostgres},
	{"MariaDB", server.MySQLVariable, server.StartMariaDB},
}

// A fleet is the servers of this run.
type fleet struct {
	scratch     *server.Scratch
	running     []*server.Server
	environment []string // what to add to the command's
}

// startServers starts what is not there yet. The fleet is to be stopped even
// when an error comes with it. At a desk a missing server is no error.
func startServers(ctx context.Context) (*fleet, error) {
	f := &fleet{}
	var err error
	if f.scratch, err = server.NewScratch(); err != nil {
		return f, err
	}
	for _, kind := range kinds {
		if os.Getenv(kind.variable) != "" {
			say("using the %s of %s", kind.name, kind.variable)
			continue
		}
		began := time.Now()
		s, err := kind.start(ctx, filepath.Join(f.scratch.Dir, kind.name))
		switch {
		case err == nil:
			f.running = append(f.running, s)
			f.environment = append(f.environment, kind.variable+"="+s.DSN())
			say("%s is ready after %v: %s", kind.name, time.Since(began).Round(time.Millisecond), s.DSN())
		case ctx.Err() != nil:
			return f, err
		case os.Getenv("CI") == "true":
			return f, fmt.Errorf("no %s, which CI must have: %w", kind.name, err)
		default:
			warn(kind.name, kind.variable, err)
		}
	}
	return f, nil
}

func warn(name, variable string, err error) {
	say("%v", err)
	say("**************************************************************")
	say("*** NO %s: its tests will be SKIPPED", name)
	say("*** set %s to use a server of your own", variable)
	say("**************************************************************")
}

// stop ends the servers and removes their data. What goes wrong is only told:
// the command's exit code is what counts.
func (f *fleet) stop() {
	var trouble error
	for _, s := range f.running {
		trouble = errors.Join(trouble, s.Stop())
	}
	if f.scratch != nil {
		trouble = errors.Join(trouble, f.scratch.Remove())
	}
	if trouble != nil {
		say("%v", trouble)
	}
}
