//go:build unix

package exec_test

import (
	"errors"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/leasefile"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/program"
	"github.com/sqllock/sqllock/migrations"
)

// migrated creates the tables, and returns their repository.
func migrated(t *testing.T, db *dbtest.DB) *sqllock.Repository {
	t.Helper()
	check.Must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
	return check.Value(sqllock.NewRepository(dbtest.Unhurried(t.Context()), db.DB.DB, db.Dialect, nil))(t)
}

// step runs a command to its end, and checks its exit code.
func step(t *testing.T, db *dbtest.DB, code int, args ...string) *program.Program {
	t.Helper()
	p := program.Start(t, db.DSN, args...)
	p.WantCode(code)
	return p
}

// pipeline starts a process that does nothing, and returns its number and what kills it.
func pipeline(t *testing.T) (pid string, kill func()) {
	t.Helper()
	cmd := osexec.CommandContext(t.Context(), "sleep", "1000")
	check.Must(t, cmd.Start())
	kill = func() { _, _ = cmd.Process.Kill(), cmd.Wait() }
	t.Cleanup(kill)
	return strconv.Itoa(cmd.Process.Pid), kill
}

// TestExpired lets a lease end, and no other process acquires the lock after it. It is lost all the same, and its row is removed.
func TestExpired(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		r := migrated(t, db)
		file := filepath.Join(t.TempDir(), "lease")
		step(t, db, 0, "acquire", "deploy", "--ttl", "1h", "--file", file)
		db.Shorten(t, "INT_LOCK", 3600)
		program.Contains(t, step(t, db, exit.LockLost, "extend", file).Stderr.Rest(), `the lock "deploy" is lost: it ended `, "no other process has acquired it")
		if row, ok, err := r.Peek(t.Context(), "deploy"); err != nil || !ok || !row.Expired() {
			t.Errorf("extend has changed the row: %+v, %v, %v", row, ok, err)
		}
		program.Contains(t, step(t, db, exit.LockLost, "release", file).Stderr.Rest(), "no other process has acquired it")
		if row, ok, err := r.Peek(t.Context(), "deploy"); err != nil || ok {
			t.Errorf("the row %+v is left, %v", row, err)
		}
	})
}

// TestLostToOneThatHasFinished has another process take the lock over, and release it with a minimum hold. Its work may have been
// done at the same time.
func TestLostToOneThatHasFinished(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	migrated(t, db)
	file, other := filepath.Join(t.TempDir(), "lease"), filepath.Join(t.TempDir(), "other")
	step(t, db, 0, "acquire", "deploy", "--key", "nightly", "--ttl", "1h", "--file", file)
	db.Shorten(t, "INT_LOCK", 3600)
	step(t, db, 0, "acquire", "deploy", "--key", "nightly", "--ttl", "1h", "--min-hold", "1h", "--file", other)
	text := check.Value(os.ReadFile(other))(t)
	step(t, db, 0, "release", other)
	check.Must(t, os.WriteFile(other, text, 0o600)) // as a step has it that reads it from a variable
	program.Contains(t, step(t, db, exit.LockLost, "extend", other).Stderr.Rest(), "it was released before, and has a minimum hold")
	program.Contains(t, step(t, db, exit.LockLost, "extend", file).Stderr.Rest(), "another process had it, and has released it with a minimum hold")
	db.Shorten(t, "INT_LOCK", 2*3600) // over, or the row of a busy key
	program.Contains(t, step(t, db, exit.LockLost, "extend", other).Stderr.Rest(), "it was released before, and is free")
	program.Contains(t, step(t, db, exit.LockLost, "release", file).Stderr.Rest(), "another process had it, and has released it: ")
}

// TestNoDirectory has a file where none can be created. The name of the one that was tried is not in the error.
func TestNoDirectory(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	migrated(t, db)
	said := step(t, db, exit.Usage, "acquire", "deploy", "--ttl", "1h", "--file", "/no/such/lease").Stderr.Rest()
	check.Equal(t, "error", said, "sqllock: --file /no/such/lease: the directory /no/such does not exist")
	said = step(t, db, exit.Usage, "acquire", "deploy", "--ttl", "1h", "--file", "/proc/self/lease").Stderr.Rest()
	program.Contains(t, said, "sqllock: --file /proc/self/lease: ")
}

// TestNamedPipe has a pipe where a file belongs, as /dev/stdout may be one: acquire does not wait for a reader, nor release
// for a second writer, and a signal ends its wait for the first.
func TestNamedPipe(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	migrated(t, db)
	file, pipe := filepath.Join(t.TempDir(), "lease"), filepath.Join(t.TempDir(), "pipe")
	check.Must(t, syscall.Mkfifo(pipe, 0o600))
	said := step(t, db, exit.Usage, "acquire", "deploy", "--ttl", "1h", "--file", pipe).Stderr.Rest()
	program.Contains(t, said, "pipe is no regular file", "try: --file -, which prints the lease; or ")

	step(t, db, 0, "acquire", "deploy", "--ttl", "1h", "--file", file)
	waiting := program.Start(t, db.DSN, "release", pipe)
	writer := check.Value(os.OpenFile(pipe, os.O_WRONLY, 0))(t) // when it has opened the pipe
	waiting.Signal(syscall.SIGTERM)
	waiting.WantCode(128 + int(syscall.SIGTERM))
	check.Must(t, writer.Close())
	release := program.Start(t, db.DSN, "release", pipe)
	check.Must(t, os.WriteFile(pipe, check.Value(os.ReadFile(file))(t), 0))
	release.WantCode(0)
	check.Must(t, check.ErrorOf(os.Stat(pipe)))
}

// TestHolderIsNamedAtOnce asks who holds a lock that was acquired less than a second ago by a process that has ended.
func TestHolderIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	migrated(t, db)
	step(t, db, 0, "acquire", "deploy", "--ttl", "1h", "--file", filepath.Join(t.TempDir(), "lease"))
	program.Contains(t, step(t, db, 0, "describe", "deploy").Stdout.Rest(), "sqllock acquire on ")
	program.Contains(t, step(t, db, 0, "unlock", "--force", "deploy").Stdout.Rest(), "held by sqllock acquire on ")
}

// TestRenewWhile has a lease outlast its time-to-live while a process lives, and not after that.
func TestRenewWhile(t *testing.T) {
	program.Slow(t)
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		r := migrated(t, db)
		file := filepath.Join(t.TempDir(), "lease")
		program.WithTTL(t, 2*time.Second, func(ttl time.Duration) (longEnough bool) {
			pid, kill := pipeline(t)
			p := program.Start(t, db.DSN, "acquire", "deploy", "--ttl", ttl.String(), "--renew-while", pid, "--file", file)
			if code := p.Code(); code != 0 {
				return false
			}
			// real time: for renewals to be due; program.WithTTL tries a longer lease where the machine was too slow
			time.Sleep(2 * ttl)
			row, ok, err := r.Peek(t.Context(), "deploy")
			if check.Must(t, err); !ok || row.Expired() {
				return false
			}
			kill()
			for limit := time.Now().Add(program.Limit); !row.Expired(); time.Sleep(ttl / 10) {
				if row, ok, err = r.Peek(t.Context(), "deploy"); err != nil || !ok {
					t.Fatal("the lease is to last for its time-to-live: ", row, ok, err)
				}
				if time.Now().After(limit) {
					t.Fatal("the lease is renewed although the process has ended")
				}
			}
			step(t, db, exit.LockLost, "release", file)
			return true
		})
	})
}

// TestRenewerEndsWithTheLock looks whether the process is still there that has renewed a lease which was released, also if
// the row stays for a minimum hold.
func TestRenewerEndsWithTheLock(t *testing.T) {
	for _, minHold := range []string{"0s", "1h"} {
		t.Run(minHold, func(t *testing.T) { testRenewerEndsWithTheLock(t, minHold) })
	}
}

func testRenewerEndsWithTheLock(t *testing.T, minHold string) {
	program.Slow(t)
	db := dbtest.SQLite(t)
	migrated(t, db)
	pid := strconv.Itoa(os.Getpid())
	before := renewers(t, pid)
	program.WithTTL(t, time.Second, func(ttl time.Duration) (longEnough bool) {
		key, file := ttl.String(), filepath.Join(t.TempDir(), "lease") // not those of the attempt before
		if program.Start(t, db.DSN, "acquire", key, "--ttl", ttl.String(), "--min-hold", minHold, "--renew-while", pid, "--file", file).Code() != 0 {
			return false
		}
		if n := renewers(t, pid); n != before+1 && runtime.GOOS == "linux" {
			return false
		}
		program.Start(t, db.DSN, "release", file).Code() // 76 on a slow machine
		for limit := time.Now().Add(program.Limit); renewers(t, pid) > before; time.Sleep(100 * time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatal("the renewer is still there")
			}
		}
		return true
	})
}

// TestMinHoldCountsFromTheAcquisition releases half an hour before the minimum hold is over, by the database's clock.
func TestMinHoldCountsFromTheAcquisition(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	r := migrated(t, db)
	file := filepath.Join(t.TempDir(), "lease")
	step(t, db, 0, "acquire", "deploy", "--ttl", "3h", "--min-hold", "2h", "--file", file)
	check.Must(t, check.ErrorOf(db.DB.Exec("UPDATE INT_LOCK SET CREATED_DATE = datetime(CREATED_DATE, 'subsec', '-90 minutes')")))
	step(t, db, 0, "release", file)
	row, ok, err := r.Peek(t.Context(), "deploy")
	if err != nil || !ok || !row.Kept() || row.Left > 30*time.Minute || row.Left < 25*time.Minute {
		t.Errorf("row %+v, %v, %v", row, ok, err)
	}
	wantFiles(t, filepath.Dir(file))
}

// renewers counts the renewers for a process.
func renewers(t *testing.T, pid string) (n int) {
	t.Helper()
	for _, path := range check.Value(filepath.Glob("/proc/[0-9]*/cmdline"))(t) {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), "renew-in-background\x00--pid\x00"+pid+"\x00") {
			n++
		}
	}
	return n
}

// TestPipelineEndsWhileWaiting kills the process for which acquire waits. The lock would have no holder.
func TestPipelineEndsWhileWaiting(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	r := migrated(t, db)
	check.Must(t, check.ErrorOf(r.Acquire(t.Context(), "deploy", "other", time.Hour)))
	pid, kill := pipeline(t)
	file := filepath.Join(t.TempDir(), "lease")
	p := program.Start(t, db.DSN, "acquire", "-v", "deploy", "--renew-while", pid, "--file", file)
	p.Stderr.Await("waiting for")
	kill()
	p.WantCode(exit.Failure)
	program.Contains(t, p.Stderr.Rest(), "the process of --renew-while has ended")
	wantFiles(t, filepath.Dir(file))
}

// TestSignalledWhileAcquireWaits ends the wait by a signal, and leaves no file.
func TestSignalledWhileAcquireWaits(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	r := migrated(t, db)
	check.Must(t, check.ErrorOf(r.Acquire(t.Context(), "deploy", "other", time.Hour)))
	file := filepath.Join(t.TempDir(), "lease")
	p := program.Start(t, db.DSN, "acquire", "-v", "deploy", "--ttl", "1h", "--file", file)
	p.Stderr.Await("waiting for")
	p.Signal(syscall.SIGTERM)
	p.WantCode(128 + int(syscall.SIGTERM))
	wantFiles(t, filepath.Dir(file))
}

// TestSignalledWhileTheRenewerStarts ends acquire by a signal while its renewer renews for the first time, which takes longer
// than the test. Neither a file nor the lock is left.
func TestSignalledWhileTheRenewerStarts(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it takes a list of processes")
	}
	t.Parallel()
	db := dbtest.SQLite(t)
	r := migrated(t, db)
	db.DB.MustExecContext(t.Context(), `CREATE TRIGGER slow BEFORE UPDATE ON INT_LOCK BEGIN
		SELECT COUNT(*) FROM (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000000000) SELECT i FROM n); END`)
	pid, _ := pipeline(t)
	file := filepath.Join(t.TempDir(), "lease")
	p := program.Start(t, db.DSN, "acquire", "deploy", "--ttl", "1h", "--renew-while", pid, "--file", file)
	for limit := time.Now().Add(program.Limit); renewers(t, pid) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("there is no renewer: ", p.Stderr.Rest())
		}
	}
	p.Signal(syscall.SIGTERM)
	p.WantCode(128 + int(syscall.SIGTERM))
	wantFiles(t, filepath.Dir(file))
	if row, ok, err := r.Peek(t.Context(), "deploy"); err != nil || ok {
		t.Errorf("the row %+v is left, %v", row, err)
	}
}

// TestFile has a file that its owner alone can read, and what hinders that it is written: none is kept, and no lock.
func TestFile(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	r := migrated(t, db)
	dir := t.TempDir()
	file, link := filepath.Join(dir, "lease"), filepath.Join(dir, "link")
	check.Must(t, os.Symlink(file, link))
	step(t, db, exit.Usage, "acquire", "deploy", "--ttl", "1h", "--file", link)
	wantFiles(t, dir, "link")
	step(t, db, 0, "acquire", "deploy", "--ttl", "1h", "--file", file)
	check.Equal(t, "mode", check.Value(os.Stat(file))(t).Mode(), 0o600)
	step(t, db, 0, "release", file)
	wantFiles(t, dir, "link")

	for _, hindrance := range []struct {
		code   int
		hinder func(file string)
	}{
		{exit.Failure, func(file string) { check.Must(t, os.RemoveAll(filepath.Dir(file))) }},
		{exit.Usage, func(file string) { step(t, db, 0, "acquire", "other", "--ttl", "1h", "--file", file) }},
	} {
		file := filepath.Join(t.TempDir(), "sub", "lease")
		check.Must(t, os.Mkdir(filepath.Dir(file), 0o700))
		check.Must(t, check.ErrorOf(r.Acquire(t.Context(), "deploy", "other", time.Hour)))
		pid, _ := pipeline(t)
		p := program.Start(t, db.DSN, "acquire", "-v", "deploy", "--ttl", "1h", "--renew-while", pid, "--file", file)
		p.Stderr.Await("waiting for")
		hindrance.hinder(file)
		check.Must(t, check.ErrorOf(r.Delete(t.Context(), "deploy", "other")))
		p.WantCode(hindrance.code)
		if row, ok, err := r.Peek(t.Context(), "deploy"); err != nil || ok {
			t.Errorf("the row %+v is left, %v", row, err)
		}
		check.Equal(t, "renewers", renewers(t, pid), 0)
		if hindrance.code == exit.Usage {
			step(t, db, 0, "release", file)
			if row, ok, err := r.Peek(t.Context(), "other"); err != nil || ok {
				t.Errorf("the row %+v of the other lease is left, %v", row, err)
			}
		}
	}
}

// TestReusedPath has two runs of a script that has one path for its file, one after the lease of the other has ended. The
// second one cannot acquire, so the first one cannot release what the second has.
func TestReusedPath(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	migrated(t, db)
	file := filepath.Join(t.TempDir(), "lease")
	step(t, db, 0, "acquire", "deploy", "--ttl", "1h", "--file", file)
	db.Shorten(t, "INT_LOCK", 3600)
	p := step(t, db, exit.Usage, "acquire", "deploy", "--ttl", "1h", "--file", file)
	program.Contains(t, p.Stderr.Rest(), `it has the lease of "deploy", which is over`)
	step(t, db, exit.LockLost, "extend", file)
	step(t, db, exit.LockLost, "release", file)
	wantFiles(t, filepath.Dir(file))
	step(t, db, 0, "acquire", "deploy", "--ttl", "1h", "--file", file)
}

// TestRenewerFails has a renewer whose lease is lost before its start, and one whose database is locked.
func TestRenewerFails(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		r := migrated(t, db)
		pid, _ := pipeline(t)
		flags := &connect.Flags{DSN: db.DSN}
		file := &leasefile.File{
			Format: 1, Lock: "deploy", Keys: []string{"deploy"}, Holder: "a", TTLSeconds: 2, Prefix: dialect.DefaultPrefix, Region: sqllock.DefaultRegion,
		}
		start := func() error {
			while := check.Value(process.Identify(check.Value(strconv.Atoi(pid))(t)))(t)
			return check.ErrorOf(leasefile.StartRenewer(t.Context(), file, while, flags))
		}
		lost := start()
		check.Equal(t, "exit code", exit.CodeOf(lost), exit.LockLost)
		program.Contains(t, lost.Error(), `the lock "deploy" is lost: its row is gone`)

		check.Must(t, check.ErrorOf(r.Acquire(t.Context(), "deploy", "a", time.Hour)))
		tx := check.Value(db.DB.Beginx())(t)
		defer func() { _ = tx.Rollback() }()
		check.Must(t, check.ErrorOf(tx.Exec("DELETE FROM INT_LOCK")))
		blocked := start()
		check.Equal(t, "exit code", exit.CodeOf(blocked), exit.Database)
		check.Equal(t, "renewers", renewers(t, pid), 0)
	})
}

// TestRenewerKeepsNoFile has a script's file open, as a pipe or a lock of flock(1), when acquire starts a renewer.
func TestRenewerKeepsNoFile(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	migrated(t, db)
	pid, _ := pipeline(t)
	file := filepath.Join(t.TempDir(), "lease")
	read, write, err := os.Pipe()
	check.Must(t, err)
	defer func() { _ = read.Close() }()
	cmd := osexec.CommandContext(t.Context(), "sqllock", "acquire", "deploy", "--ttl", "1h", "--renew-while", pid, "--file", file)
	cmd.Env = append(os.Environ(), "SQLLOCK_DSN="+db.DSN)
	cmd.ExtraFiles = []*os.File{write}
	check.Must(t, errors.Join(cmd.Run(), write.Close()))
	check.Must(t, read.SetReadDeadline(time.Now().Add(program.Limit)))
	if _, err := read.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Error("the renewer has the file: ", err)
	}
	step(t, db, 0, "extend", file)
}

// TestTheReaderHasGoneBefore has acquire print the token, and release a message, to pipes without a reader. Without the token
// neither the file nor the lock is left.
func TestTheReaderHasGoneBefore(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	r := migrated(t, db)
	read, write, err := os.Pipe()
	check.Must(t, errors.Join(err, read.Close()))
	defer write.Close()
	run := func(stdout, stderr io.Writer, args ...string) (code int) { // -1 after SIGPIPE
		cmd := osexec.CommandContext(t.Context(), "sqllock", args...)
		cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "SQLLOCK_DSN="+db.DSN), stdout, stderr
		_ = cmd.Run()
		return cmd.ProcessState.ExitCode()
	}
	file := filepath.Join(t.TempDir(), "lease")
	acquire := []string{"acquire", "deploy", "--ttl", "1h", "--min-hold", "1h", "--file", file}
	check.Equal(t, "exit code of acquire", run(write, nil, acquire...), exit.Failure)
	wantFiles(t, filepath.Dir(file))
	if row, ok, err := r.Peek(t.Context(), "deploy"); err != nil || ok {
		t.Errorf("the row %+v is left, %v", row, err)
	}
	check.Equal(t, "exit code of acquire", run(nil, write, acquire...), 0)
	check.Equal(t, "exit code of release", run(nil, write, "release", file), 0)
	wantFiles(t, filepath.Dir(file))
}

// TestExtendPrintsTheEnd extends for less than what is left.
func TestExtendPrintsTheEnd(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		migrated(t, db)
		file := filepath.Join(t.TempDir(), "lease")
		began := time.Now()
		step(t, db, 0, "acquire", "deploy", "--ttl", "1h", "--file", file)
		p := step(t, db, 0, "extend", file, "--ttl", "1m")
		end := check.Value(time.Parse(time.RFC3339, strings.TrimSpace(p.Stdout.Rest())))(t)
		if late := end.Sub(began.Add(time.Hour)); late < -3*time.Second || end.After(time.Now().Add(time.Hour)) {
			t.Errorf("the lease of an hour that began at %v ends at %v", began, end)
		}
	})
}

// TestManyLongKeys has a file of more than a megabyte.
func TestManyLongKeys(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	migrated(t, db)
	file := filepath.Join(t.TempDir(), "lease")
	args := []string{"acquire", "deploy", "--ttl", "1h", "--file", file}
	for i := range 13 {
		args = append(args, "--key", strconv.Itoa(i)+strings.Repeat("k", 100_000))
	}
	step(t, db, 0, args...)
	step(t, db, 0, "release", file)
}

func wantFiles(t *testing.T, dir string, names ...string) {
	t.Helper()
	var got []string
	for _, entry := range check.Value(os.ReadDir(dir))(t) {
		got = append(got, entry.Name())
	}
	check.Same(t, "files", got, names)
}
