package servers_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
	"github.com/sqllock/sqllock/internal/test/program"
	"github.com/sqllock/sqllock/migrations"
	"github.com/sqllock/sqllock/sync/rwlock"
	"github.com/sqllock/sqllock/sync/semaphore"
)

// beforeTheFirstRelease is what stands for the last release until there is a tag. Its rows of permits and readers
// have other names.
const beforeTheFirstRelease = "2693e43f6b0174b63569b08122f59426bec425a8"

// A release is the command of another version.
type release struct {
	revision, path string
	isTagged       bool
}

// lastRelease builds the command of the newest tag, or of SQLLOCK_TEST_RELEASE.
func lastRelease(t *testing.T) release {
	t.Helper()
	git := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = "../../.." // of the whole repository
		out, err := cmd.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	shallow, err := git("rev-parse", "--is-shallow-repository")
	switch {
	case err != nil:
		t.Skipf("the last release is not tested: this is no checkout of git: %s", shallow)
	case shallow == "true" && os.Getenv("GITHUB_ACTIONS") == "true": // whose workflow says how much to fetch
		t.Fatal("the checkout has no tags: the workflow must fetch all of the history (fetch-depth: 0)")
	}
	r := release{revision: os.Getenv("SQLLOCK_TEST_RELEASE"), isTagged: true}
	if r.revision == "" {
		tags := check.Value(git("tag", "--list", "v[0-9]*", "--sort=-version:refname"))(t)
		r.revision, _, _ = strings.Cut(tags, "\n")
	}
	if r.revision == "" {
		r.revision, r.isTagged = beforeTheFirstRelease, false
		if text, err := git("cat-file", "-e", r.revision); err != nil {
			t.Skipf("the last release is not tested: there is no tag yet, and no commit %s: %s", r.revision, text)
		}
	}
	bin := t.TempDir()
	r.path = filepath.Join(bin, "sqllock") // os/exec adds .exe on Windows, as go build does
	build := exec.CommandContext(t.Context(), "go", append(append([]string{"build"}, program.BuildFlags(t)...), "-buildvcs=false", "-o", bin, "./cmd/sqllock")...)
	build.Dir = r.source(t, git)
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, text)
	}
	t.Logf("the last release is %s", r.revision)
	return r
}

// source returns the directory of the release's source. It is kept beside the servers that are fetched, since Go compiles
// what is in another directory again.
func (r release) source(t *testing.T, git func(args ...string) (string, error)) string {
	t.Helper()
	commit := check.Value(git("rev-parse", r.revision+"^{commit}"))(t)
	kept := filepath.Join(check.Value(os.UserCacheDir())(t), "sqllock-dbtest", "source-"+commit)
	if _, err := os.Stat(kept); err == nil {
		return kept
	}
	must(t, os.MkdirAll(filepath.Dir(kept), 0o700))
	dir := check.Value(os.MkdirTemp(filepath.Dir(kept), "source-"))(t) //nolint:usetesting // it is renamed to kept, on the same disk
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	archive := filepath.Join(t.TempDir(), "source.tar")
	if text, err := git("archive", "--output="+archive, commit); err != nil {
		t.Fatal(text)
	}
	unpack := exec.CommandContext(t.Context(), "tar", "-xf", archive, "-C", dir)
	if text, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", unpack, err, text)
	}
	if err := os.Rename(dir, kept); err != nil && check.ErrorOf(os.Stat(kept)) != nil { // no other run has been faster
		t.Fatal(err)
	}
	return kept
}

// command returns a command line of the release over a database.
func (r release) command(t *testing.T, db *dbtest.DB, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), r.path, args...)
	cmd.Env = append(os.Environ(), "SQLLOCK_DSN="+db.DSN, "XDG_STATE_HOME="+t.TempDir())
	return cmd
}

// token locks k as a process of the release, which must be free, and returns the fencing token.
func (r release) token(t *testing.T, db *dbtest.DB) int64 {
	t.Helper()
	cmd := r.command(t, db, "exec", "--nonblock", "k", "--", "sh", "-c", "echo $SQLLOCK_TOKEN")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return check.Value(strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64))(t)
}

// excluded checks that a process of the release does not get a lock.
func (r release) excluded(t *testing.T, db *dbtest.DB, args ...string) {
	t.Helper()
	const notAcquired = 75
	cmd := r.command(t, db, append(append([]string{"exec", "--nonblock"}, args...), "--", "true")...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != notAcquired {
		t.Errorf("%s: %v\n%s", cmd, err, out)
	}
}

// holding runs fn while a process of the release has k.
func (r release) holding(t *testing.T, db *dbtest.DB, fn func()) {
	t.Helper()
	cmd := r.command(t, db, "exec", "k", "--", "sh", "-c", "echo held; cat")
	in := check.Value(cmd.StdinPipe())(t)
	out := check.Value(cmd.StdoutPipe())(t)
	must(t, cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Errorf("%q, %v", line, err)
	}
	fn()
	must(t, in.Close())
	must(t, cmd.Wait())
}

// The last release and this version exclude each other on each database, whichever of them has made the tables, and
// their fencing tokens rise: so an upgrade and a rollback need no stop.
func TestRelease_BesideThisVersion(t *testing.T) {
	t.Parallel()
	check.Long(t)
	last := lastRelease(t)
	for name, open := range map[string]func(testing.TB) *dbtest.DB{
		server.SQLite: dbtest.SQLite, server.Postgres: dbtest.Postgres, server.MySQL: dbtest.MySQL, server.OracleMySQL: dbtest.OracleMySQL,
	} {
		for _, isTheirs := range []bool{false, true} {
			t.Run(name+map[bool]string{false: ", made by this version", true: ", made by the release"}[isTheirs], func(t *testing.T) {
				t.Parallel()
				db := open(t)
				if isTheirs {
					up := last.command(t, db, "migrate", "up")
					if out, err := up.CombinedOutput(); err != nil {
						t.Fatalf("%s: %v\n%s", up, err, out)
					}
				}
				must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
				besideThisVersion(t, last, db)
			})
		}
	}
}

func besideThisVersion(t *testing.T, last release, db *dbtest.DB) {
	t.Helper()
	repository := repository(t, db, nil)
	registry := newRegistry(t, repository, &sqllock.RegistryOptions{TTL: ttl, NoRenew: true})
	before := last.token(t, db)
	joint := check.Value(registry.ObtainAll("k", "l"))(t)
	lease := check.Value(joint.TryLock(t.Context()))(t)
	last.excluded(t, db, "k")
	last.excluded(t, db, "other", "--key", "l")
	must(t, lease.Unlock(t.Context()))
	if after := last.token(t, db); lease.Token() <= before || after <= lease.Token() {
		t.Errorf("tokens %d, %d, %d", before, lease.Token(), after)
	}
	last.holding(t, db, func() {
		for _, lock := range []*sqllock.JdbcLock{obtain(t, registry, "k"), joint} {
			is(t, check.ErrorOf(lock.TryLock(t.Context())), sqllock.ErrNotAcquired)
		}
	})
	must(t, registry.ExecuteLocked(t.Context(), "k", func(ctx context.Context) error { return ctx.Err() }))
	if last.isTagged {
		seatsBesideThisVersion(t, last, db, registry)
	}
}

// seatsBesideThisVersion checks the locks that are made of several rows, whose names are a promise.
func seatsBesideThisVersion(t *testing.T, last release, db *dbtest.DB, registry *sqllock.Registry) {
	t.Helper()
	permits := check.Value(semaphore.New(registry, "s", 1))(t)
	readWrite := check.Value(rwlock.New(registry, "rw"))(t)
	permit := check.Value(permits.TryAcquire(t.Context(), 1))(t)
	reader := check.Value(readWrite.TryRLock(t.Context()))(t)
	last.excluded(t, db, "s", "--permits", "1")
	last.excluded(t, db, "rw", "--exclusive")
	must(t, reader.Unlock(t.Context()))
	must(t, permit.Unlock(t.Context()))
}
