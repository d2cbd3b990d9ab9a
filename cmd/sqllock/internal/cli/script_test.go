package cli

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exec"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/program"
)

func TestMain(m *testing.M) { program.Main(m, Main, exec.HelperNames...) }

// TestScripts runs testdata/script/*.txtar. Each has its own state directory; these commands are
// added:
//
//	run N ARGS…                                    runs sqllock, and checks that it ends with code N
//	exitcode N PROGRAM ARGS…                       checks that a program ends with code N
//	sql DATABASE STATEMENT                         executes a statement in an SQLite file
//	row DATABASE LOCK_KEY REGION HOLDER AGE LEFT   puts a row into one
//
// run calls the program in this process, which takes a tenth of the time; it is for command lines
// that start no process. exec sqllock is the program itself. The scripts of exec take seconds,
// because each exec starts three processes.
func TestScripts(t *testing.T) { runScripts(t, "", nil, "script") }

// TestDatabases runs the scripts of testdata/databases, each with a new database, to which SQLLOCK_DSN leads. Its
// kind is a condition of scripts, and so is tls, if PostgreSQL may have it. UNIQUE is a name that no other script has. These commands are added:
//
//	sql STATEMENT      executes a statement; without one, those that the last command has printed
//	dsn PATTERN TEXT   replaces what matches a regular expression in SQLLOCK_DSN
//	hold KEY           acquires a lock for a minute, and sets HOLDER
func TestDatabases(t *testing.T) {
	for kind, test := range map[string]struct {
		create  func(testing.TB) *dbtest.DB
		folders []string
	}{
		"sqlite":       {dbtest.SQLite, []string{"databases/each"}},
		"postgres":     {dbtest.Postgres, []string{"databases/each", "databases/postgres"}},
		"mysql":        {dbtest.MySQL, []string{"databases/each", "databases/mysql", "databases/grants"}},
		"oracle-mysql": {dbtest.OracleMySQL, []string{"databases/grants"}},
		"pgbouncer":    {dbtest.PgBouncer, []string{"databases/pgbouncer"}},
	} {
		t.Run(kind, func(t *testing.T) { runScripts(t, kind, test.create, test.folders...) })
	}
}

// runScripts runs the scripts of folders of testdata, with databases of a kind if create is not nil.
func runScripts(t *testing.T, kind string, create func(testing.TB) *dbtest.DB, folders ...string) {
	t.Helper()
	p := testscript.Params{
		Setup: func(env *testscript.Env) error { return setUp(env, create) },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"run": runHere, "exitcode": wantExitCode, "sql": executeSQL, "row": insertRow, "dsn": changeDSN, "hold": hold,
		},
	}
	if create != nil {
		p.Condition = func(condition string) (bool, error) {
			mayHaveTLS := !strings.Contains(os.Getenv("SQLLOCK_TEST_POSTGRES"), "sslmode=disable")
			return condition == kind || condition == "tls" && mayHaveTLS, nil
		}
	}
	for _, folder := range folders {
		files := check.Value(filepath.Glob(filepath.Join("testdata", folder, "*.txtar")))(t)
		for _, file := range files {
			file = check.Value(filepath.Abs(file))(t) // run changes the directory
			p.Files = append(p.Files, file)
		}
	}
	testscript.Run(t, p)
}

func setUp(env *testscript.Env, create func(testing.TB) *dbtest.DB) error {
	env.Setenv("XDG_STATE_HOME", env.WorkDir+"/state")
	env.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise every program takes a second longer
	running.Lock()                            // a script's directory of temporary files, in which no other database may be
	defer running.Unlock()
	program, err := osexec.LookPath("sqllock")
	if err != nil {
		return err
	}
	env.Setenv("SQLLOCK", program)
	env.Setenv("DEFAULT_DB", env.WorkDir+"/state/sqllock/sqllock.db")
	if create != nil {
		db := create(env.T().(testing.TB)) // as testscript says
		env.Values[databaseOf{}] = db
		env.Setenv(connect.DSNVariable, db.DSN)
		env.Setenv("UNIQUE", strings.ToLower(rand.Text()[:12]))
	}
	return nil
}

// databaseOf is the key of a script's database.
type databaseOf struct{}

// running guards the variables and the directory of this process.
var running sync.Mutex

func runHere(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 1 {
		ts.Fatalf("usage: run N ARGS...")
	}
	running.Lock()
	defer running.Unlock()
	for _, name := range []string{"XDG_STATE_HOME", "HOME", "TMPDIR", "PATH", connect.DSNVariable, "SQLLOCK_PREFIX", "SQLLOCK_REGION"} {
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

// executeSQL executes a statement in the script's database, or in an SQLite file.
func executeSQL(ts *testscript.TestScript, _ bool, args []string) {
	if db, ok := ts.Value(databaseOf{}).(*dbtest.DB); ok {
		statements := []string{strings.Join(args, " ")}
		if len(args) == 0 {
			statements = strings.Split(strings.TrimSpace(lineComment.ReplaceAllString(ts.ReadFile("stdout"), "")), ";\n")
		}
		conn, err := db.DB.Conn(context.Background())
		ts.Check(err)
		defer func() { ts.Check(conn.Close()) }()
		for _, statement := range statements {
			if _, err := conn.ExecContext(context.Background(), statement); err != nil {
				ts.Fatalf("%s: %v", statement, err)
			}
		}
		return
	}
	if len(args) != 2 {
		ts.Fatalf("usage: sql DATABASE STATEMENT")
	}
	executeIn(ts, args[0], args[1])
}

var lineComment = regexp.MustCompile(`(?m)^--.*\n`)

func executeIn(ts *testscript.TestScript, file, statement string, args ...any) {
	db, err := sql.Open("sqlite", "file:"+ts.MkAbs(file)+"?_pragma=busy_timeout(10000)")
	ts.Check(err)
	defer func() { ts.Check(db.Close()) }()
	_, err = db.ExecContext(context.Background(), statement, args...)
	ts.Check(err)
}

func insertRow(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 6 {
		ts.Fatalf("usage: row DATABASE LOCK_KEY REGION HOLDER AGE LEFT, both in seconds")
	}
	executeIn(ts, args[0], `INSERT INTO INT_LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER)
VALUES (?, ?, ?, datetime('now', 'subsec', '-' || ? || ' seconds'), datetime('now', 'subsec', ? || ' seconds'))`,
		args[1], args[2], args[3], args[4], args[5])
}

func changeDSN(ts *testscript.TestScript, _ bool, args []string) {
	pattern, dsn := regexp.MustCompile(args[0]), ts.Getenv(connect.DSNVariable)
	if !pattern.MatchString(dsn) {
		ts.Fatalf("the DSN %s has no %s", dsn, pattern)
	}
	ts.Setenv(connect.DSNVariable, pattern.ReplaceAllString(dsn, args[1]))
}

func hold(ts *testscript.TestScript, _ bool, args []string) {
	db := ts.Value(databaseOf{}).(*dbtest.DB)
	r, err := sqllock.NewRepository(context.Background(), db.DB.DB, db.Dialect, &sqllock.RepositoryOptions{ClientID: "test"})
	ts.Check(err)
	holder := r.NewHolder()
	got, err := r.Acquire(context.Background(), args[0], holder, time.Minute)
	ts.Check(err)
	if !got.Acquired {
		ts.Fatalf("%s is held: %+v", args[0], got)
	}
	ts.Setenv("HOLDER", holder)
}
