package cli

import (
	"context"
	"database/sql"
	"errors"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exec"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/program"
)

func TestMain(m *testing.M) { program.Main(m, Main, exec.HelperNames...) }

// TestScripts runs testdata/script/*.txtar. Each has its own state directory; these commands are
// added:
//
//	run N ARGS…                                    runs sqllock, and checks that it ends with code N
//	exitcode N PROGRAM ARGS…                       checks that a program ends with code N
//	row DATABASE LOCK_KEY REGION HOLDER AGE LEFT   puts a row into an SQLite file
//	spring6 DATABASE                               creates Spring 6's table in one, with a row of orders/42
//	dropcolumns DATABASE                           removes all columns but LOCK_KEY
//	binary FILE                                    writes a file that is neither a program nor text
//
// run calls the program in this process, which takes a tenth of the time; it is for command lines
// that start no process. exec sqllock is the program itself. The scripts of exec take seconds,
// because each exec starts three processes.
func TestScripts(t *testing.T) {
	scripts, err := filepath.Abs("testdata/script") // run changes the directory
	check.Must(t, err)
	testscript.Run(t, testscript.Params{
		Dir: scripts,
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_STATE_HOME", env.WorkDir+"/state")
			env.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise every program takes a second longer
			program, err := osexec.LookPath("sqllock")
			if err != nil {
				return err
			}
			env.Setenv("SQLLOCK", program)
			env.Setenv("DEFAULT_DB", env.WorkDir+"/state/sqllock/sqllock.db")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"run":         runHere,
			"exitcode":    wantExitCode,
			"row":         scripted(insertRow),
			"spring6":     scripted(createSpring6),
			"dropcolumns": scripted(dropColumns),
			"binary":      writeBinary,
		},
	})
}

// running guards the variables and the directory of this process.
var running sync.Mutex

func runHere(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 1 {
		ts.Fatalf("usage: run N ARGS...")
	}
	running.Lock()
	defer running.Unlock()
	for _, name := range []string{"XDG_STATE_HOME", "HOME", "TMPDIR", "PATH", connect.DSNVariable} {
		value, ok := os.LookupEnv(name)
		ts.Check(os.Setenv(name, ts.Getenv(name)))
		if ts.Getenv(name) == "" { // an empty DSN is an error
			ts.Check(os.Unsetenv(name))
		}
		defer func() {
			if !ok {
				ts.Check(os.Unsetenv(name))
				return
			}
			ts.Check(os.Setenv(name, value))
		}()
	}
	before, err := os.Getwd()
	ts.Check(err)
	ts.Check(os.Chdir(ts.MkAbs(".")))
	defer func() { ts.Check(os.Chdir(before)) }()
	code := run(context.Background(), args[1:], strings.NewReader(""), ts.Stdout(), ts.Stderr())
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

func wantExitCode(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exitcode N PROGRAM ARGS...")
	}
	code := 0
	var exit *osexec.ExitError
	switch err := ts.Exec(args[1], args[2:]...); {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	default:
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// scripted returns a command for scripts that calls fn with an SQLite file, its first
// argument.
func scripted(fn func(db *sql.DB, args []string) error) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		if len(args) == 0 {
			ts.Fatalf("the database is missing")
		}
		db, err := sql.Open("sqlite", "file:"+ts.MkAbs(args[0])+"?_pragma=busy_timeout(10000)")
		ts.Check(err)
		defer func() { ts.Check(db.Close()) }()
		ts.Check(fn(db, args[1:]))
	}
}

func writeBinary(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: binary FILE")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte("\x7fno program\x00\n"), 0o755))
}

func insertRow(db *sql.DB, args []string) error {
	if len(args) != 5 {
		return errors.New("usage: row DATABASE LOCK_KEY REGION HOLDER AGE LEFT, both in seconds")
	}
	_, err := db.ExecContext(context.Background(), `INSERT INTO INT_LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER)
VALUES (?, ?, ?, datetime('now', 'subsec', '-' || ? || ' seconds'), datetime('now', 'subsec', ? || ' seconds'))`,
		args[0], args[1], args[2], args[3], args[4])
	return err
}

func createSpring6(db *sql.DB, _ []string) error {
	_, err := db.ExecContext(context.Background(), `CREATE TABLE INT_LOCK (
LOCK_KEY CHAR(36) NOT NULL, REGION VARCHAR(100) NOT NULL, CLIENT_ID CHAR(36), CREATED_DATE TIMESTAMP NOT NULL,
CONSTRAINT INT_LOCK_PK PRIMARY KEY (LOCK_KEY, REGION));
INSERT INTO INT_LOCK VALUES ('d5642a7a-3ff9-3c02-839e-0a4ee8b8f024', 'DEFAULT', 'java', datetime('now', 'subsec', '-20 seconds'))`)
	return err
}

func dropColumns(db *sql.DB, _ []string) error {
	_, err := db.ExecContext(context.Background(), `DROP TABLE INT_LOCK; CREATE TABLE INT_LOCK (LOCK_KEY CHAR(36))`)
	return err
}
