//go:build unix

package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/program"
	"github.com/sqllock/sqllock/observe"
)

// TestNobodyReadsThatALeaseHasEnded ends a command whose lease has ended while stderr blocks.
func TestNobodyReadsThatALeaseHasEnded(t *testing.T) {
	t.Parallel()
	read, write := io.Pipe()
	defer read.Close()
	x := &execution{wanted: wanted{key: "nightly"}, grace: time.Hour, stderr: write}
	c := check.Value(process.Start(script(t, "exec sleep 1000"), false, true))(t)
	lease, end := context.WithCancel(t.Context())
	end()
	go x.attend(lease, c, nil, nil)
	select {
	case <-c.Ended:
	case <-time.After(program.Limit):
		c.Kill()
		t.Error("the command goes on")
	}
}

// TestNobodyReadsOfARenewal has renewals fail and succeed again while stderr blocks. Each is reported to the keeper, and the
// renewer goes on.
func TestNobodyReadsOfARenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		read, write := io.Pipe()
		defer read.Close()
		registry := check.Value(sqllock.NewRegistry(inVirtualTime(t), nil))(t)
		defer registry.Close(t.Context())
		x := &execution{wanted: wanted{key: "nightly"}, stderr: write, renewed: make(chan struct{}, 1)}
		renewed := x.renewals(&holding{registry: registry})
		for _, err := range []error{errors.New("refused"), nil, errors.New("refused")} {
			renewed(t.Context(), observe.Renewal{Err: err})
			<-x.renewed
		}
	})
}

// TestThePrinterKeepsTheLastMessages prints more messages than are kept before one is read. The first is being written.
func TestThePrinterKeepsTheLastMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		read, write := io.Pipe()
		x := &execution{stderr: write}
		x.printf("%d", 0)
		synctest.Wait()
		var want strings.Builder
		want.WriteString("sqllock: 0\n")
		for i := range messagesKept + 10 {
			if x.printf("%d", i); i >= 10 {
				fmt.Fprintf(&want, "sqllock: %d\n", i)
			}
		}
		began := time.Now()
		x.printer.flush()
		check.Equal(t, "time of a flush that nobody reads", time.Since(began), flushLimit)
		go func() {
			x.printer.flush()
			write.Close()
		}()
		check.Equal(t, "messages", string(check.Value(io.ReadAll(read))(t)), want.String())
	})
}

// TestAnErrorThatNobodyReads has exec end although its last message blocks.
func TestAnErrorThatNobodyReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		read, write := io.Pipe()
		began := time.Now()
		Report(write, errors.New("lost"), "")
		check.Equal(t, "time of a report to a reader that stalls", time.Since(began), flushLimit)
		check.Must(t, read.Close())
	})
}

// TestTheReaderHasGone closes the stderr of exec and lead while a command runs. They go on and end with its code. A broken
// pipe kills the processes of the command as usual.
func TestTheReaderHasGone(t *testing.T) {
	t.Parallel()
	for _, subcommand := range []string{"exec", "lead"} {
		t.Run(subcommand, func(t *testing.T) {
			t.Parallel()
			db := dbtest.SQLite(t)
			r := migrated(t, db)
			p := program.Start(t, db.DSN, subcommand, "-v", "nightly", "--", "sh", "-c",
				`echo inside; read wait; sh -c 'kill -PIPE $$'; test $? = 141 && exit 7`)
			p.Stdout.Await("inside")
			p.Stderr.File.Close()
			p.Stdin.Close()
			p.WantCode(7) // and not -1, of SIGPIPE
			if row, ok, err := r.Peek(t.Context(), "nightly"); ok || err != nil {
				t.Errorf("the row %+v is left, %v", row, err)
			}
		})
	}
}
