package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
)

func TestMain(m *testing.M) {
	commands := map[string]func(){"sqllock": main}
	for name, command := range helperCommands {
		commands[name] = command
	}
	testscript.Main(m, commands)
}

// TestScripts runs testdata/script/*.txtar against the program itself. Each has
// its own state directory; these commands are added:
//
//	exitcode N PROGRAM ARGS…                       wants a program to end with code N
//	row DATABASE LOCK_KEY REGION HOLDER AGE LEFT   puts a row into an SQLite file
//	spring6 DATABASE                               makes Spring 6's table in one, with a row of orders/42
//	dropcolumns DATABASE                           leaves only LOCK_KEY
//	binary FILE                                    makes a file one that is no program and no text
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_STATE_HOME", env.WorkDir+"/state")
			env.Setenv("GORACE", "atexit_sleep_ms=0") // else every program takes a second more
			program, err := exec.LookPath("sqllock")
			if err != nil {
				return err
			}
			env.Setenv("SQLLOCK", program)
			env.Setenv("DEFAULT_DB", env.WorkDir+"/state/sqllock/sqllock.db")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exitcode":    wantExitCode,
			"row":         scripted(insertRow),
			"spring6":     scripted(createSpring6),
			"dropcolumns": scripted(dropColumns),
			"binary":      writeBinary,
		},
	})
}

func wantExitCode(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exitcode N PROGRAM ARGS...")
	}
	code := 0
	var exit *exec.ExitError
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

// scripted makes a script's command of a function that works on an SQLite file,
// its first argument.
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

func TestCodeOf(t *testing.T) {
	held := &sqllock.HeldError{Key: "k"}
	for _, test := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("x"), exitFailure},
		{context.Canceled, exitFailure},
		{fmt.Errorf("x: %w", sqllock.ErrInvalid), exitUsage},
		{usageError("x"), exitUsage},
		{withHint(usageError("x"), "y"), exitUsage},
		{fmt.Errorf("x: %w", sqllock.ErrSchema), exitDatabase},
		{held, exitNotAcquired},
		{errors.Join(sqllock.ErrLockLost, sqllock.ErrDatabase), exitLockLost},
		{&exitError{code: 3}, 3},
	} {
		if got := codeOf(test.err); got != test.want {
			t.Errorf("codeOf(%v) = %d, want %d", test.err, got, test.want)
		}
	}
}

func TestOlderThan(t *testing.T) {
	for _, test := range []struct {
		kind, version string
		want          bool
	}{
		{"postgres", "PostgreSQL 15.14 (Debian 15.14-0+deb12u1) on x86_64-pc-linux-gnu", false},
		{"postgres", "PostgreSQL 9.6.24 on x86_64-pc-linux-gnu", true},
		{"postgres", "PostgreSQL 10.1", false},
		{"mysql", "8.0.43", false},
		{"mysql", "5.7.44-log", true},
		{"mysql", "10.11.14-MariaDB-0+deb12u2", false},
		{"mysql", "10.5.29-MariaDB", true},
		{"sqlite", "SQLite 3.53.4", false},
		{"sqlite", "SQLite 3.41.2", true},
		{"postgres", "something else", false},
	} {
		_, oldest := serverOf(test.kind, test.version)
		if got := olderThan(test.version, oldest); got != test.want {
			t.Errorf("olderThan(%q, %q) = %v, want %v", test.version, oldest, got, test.want)
		}
	}
	if name, _ := serverOf(dialect.Postgres().Name, "PostgreSQL 15.14 (Debian) on x86_64"); name != "PostgreSQL 15.14 (Debian)" {
		t.Errorf("name %q", name)
	}
}
