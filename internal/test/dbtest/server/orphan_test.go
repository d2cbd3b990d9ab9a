package server_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	osexec "os/exec"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// orphanmaker is an environment variable. A copy of the test program starts the server that it
// names and leaves it behind.
const orphanmaker = "SQLLOCK_TEST_ORPHANMAKER"

// exitMissing is the copy's exit code if there is no such server.
const exitMissing = 77

// beOrphanmaker does nothing if the variable is not set.
func beOrphanmaker() {
	by, ok := starters[os.Getenv(orphanmaker)]
	if !ok {
		return
	}
	servers, err := by.start(context.Background(), os.Getenv("SQLLOCK_TEST_DIR"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		if isMissing(err) {
			os.Exit(exitMissing)
		}
		os.Exit(1)
	}
	fmt.Println(servers[len(servers)-1].DSN())
	select {} // until killed
}

// TestServerDiesWithItsParent takes seconds, because starts of servers do.
func TestServerDiesWithItsParent(t *testing.T) {
	for name, by := range starters {
		t.Run(name, func(t *testing.T) {
			required := need(t, name)
			scratch, err := server.NewScratch()
			if err != nil {
				t.Fatal(err)
			}
			parent := osexec.CommandContext(t.Context(), os.Args[0])
			parent.Env = append(os.Environ(), orphanmaker+"="+name, "SQLLOCK_TEST_DIR="+scratch.Dir)
			parent.Stderr = os.Stderr
			out, err := parent.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := parent.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			if !lines.Scan() {
				_ = parent.Wait() // its error is the exit code
				if parent.ProcessState.ExitCode() == exitMissing && !required {
					t.Skip("SKIPPED, no server to test with")
				}
				t.Fatal("the copy has started no server")
			}
			orphan := open(t, by.driver, lines.Text())
			orphan.SetMaxIdleConns(0) // each ping is a new connection
			count(t, orphan, "SELECT 1")
			if err := parent.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = parent.Wait() // it was killed
			awaitDown(t, orphan)
			if err := scratch.Remove(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func awaitDown(t *testing.T, db *sql.DB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for db.PingContext(ctx) == nil {
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatal("the server outlives its parent")
		}
	}
}
