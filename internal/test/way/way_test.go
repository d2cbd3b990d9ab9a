package way

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/golden"
	"github.com/sqllock/sqllock/internal/test/testmain"
	"github.com/sqllock/sqllock/internal/test/virtual"
	"github.com/sqllock/sqllock/internal/test/way/trace"
)

func TestMain(m *testing.M) { testmain.Run(m) }

// output is the variable of the environment that names the file for the ways of a traced build.
const output = "SQLLOCK_TEST_WAYS"

// A way is what a call has entered.
type way struct {
	Call  string
	Steps []trace.Step
}

// TestWays holds how far a developer has to go who follows a call. The figures of testdata/ways.tsv are limits: a way that is
// longer needs a reason, and one that has become shorter is written there with -update. With -v it prints the ways.
func TestWays(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles the library once more")
	}
	t.Parallel()
	dir := t.TempDir()
	overlay := check.Value(writeOverlay(t.Context(), dir))(t)
	path := filepath.Join(dir, "ways.json")
	walk := exec.CommandContext(t.Context(), "go", "test", "-overlay="+overlay, "-vet=off", "-count=1", "-cpu=1", "-run=^TestWalk$", ".")
	walk.Env = append(os.Environ(), output+"="+path)
	if printed, err := walk.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	var ways []way
	check.Must(t, json.Unmarshal(check.Value(os.ReadFile(path))(t), &ways))
	text := "# call\tfunctions\tfiles\tmoves: how many functions the call enters, in how many files, and how often from one file to another\n"
	for _, w := range ways {
		text += w.figures()
		t.Logf("%s:%s", w.Call, w.text())
	}
	golden.Check(t, "testdata/ways.tsv", text)
}

// figures returns the line of a way: how many functions it enters, each as often as it is entered; in how many files they
// are; and how often the next one is in another file than the last.
func (w way) figures() string {
	files := make(map[string]bool)
	for _, step := range w.Steps {
		files[step.File] = true
	}
	return fmt.Sprintf("%s\t%d\t%d\t%d\n", w.Call, len(w.Steps), len(files), w.moves())
}

// moves returns how often the next function of a way is in another file than the last.
func (w way) moves() (n int) {
	last := ""
	for _, step := range w.Steps {
		if step.File != last {
			n++
		}
		last = step.File
	}
	return n
}

// text returns the functions of a way, a line for each move.
func (w way) text() string {
	var text strings.Builder
	last := ""
	for _, step := range w.Steps {
		if step.File != last {
			text.WriteString("\n\t" + step.File + ":")
		}
		text.WriteString(" " + step.Function)
		last = step.File
	}
	return text.String()
}

// TestWalk walks the ways. In the build of TestWays, which is traced, it writes them to a file.
func TestWalk(t *testing.T) {
	t.Parallel()
	var ways []way
	synctest.Test(t, func(t *testing.T) {
		database := virtual.Migrated(t, dialect.Spring7)
		registry := func() *sqllock.Registry {
			repository := check.Value(sqllock.NewRepository(t.Context(), database.DB.DB, database.Dialect, nil))(t)
			registry := check.Value(sqllock.NewRegistry(repository, nil))(t)
			t.Cleanup(func() { check.Must(t, registry.Close(context.WithoutCancel(t.Context()))) })
			return registry
		}
		one, other := registry(), registry()
		of := func(r *sqllock.Registry, keys ...string) *sqllock.JdbcLock {
			return check.Value(r.ObtainAll(keys...))(t)
		}
		free, joint, taken, elsewhere := of(one, "free"), of(one, "a", "b", "c"), of(one, "taken"), of(other, "taken")

		var lease *sqllock.Lease
		walk := func(call string, do func(context.Context) error) {
			steps := trace.Of(func() {
				check.Must(t, do(t.Context()))
				synctest.Wait()
			})
			w := way{call, steps}
			switch i := slices.IndexFunc(ways, func(other way) bool { return other.Call == call }); {
			case i < 0:
				ways = append(ways, w)
			case w.moves() < ways[i].moves(): // on a busy machine goroutines may run in between
				ways[i] = w
			}
		}
		locked := func(lock *sqllock.JdbcLock) func(context.Context) error {
			return func(ctx context.Context) (err error) {
				lease, err = lock.Lock(ctx)
				return err
			}
		}
		unlock := func(ctx context.Context) error { return lease.Unlock(ctx) }
		for round := range 4 {
			if round == 1 { // caches are filled
				ways = nil
			}
			walk("Lock", locked(free))
			walk("Renew", func(ctx context.Context) error { return lease.Renew(ctx) })
			walk("Unlock", unlock)
			walk("joint Lock", locked(joint))
			walk("joint Unlock", unlock)
			holder := check.Value(elsewhere.Lock(t.Context()))(t)
			walk("Lock that waits", func(ctx context.Context) error {
				released := make(chan error, 1)
				time.AfterFunc(120*time.Millisecond, func() { released <- holder.Unlock(ctx) })
				if err := locked(taken)(ctx); err != nil {
					return err
				}
				return <-released
			})
			check.Must(t, lease.Unlock(t.Context()))
			time.Sleep(20 * time.Second) // what was seen of other holders is old then
		}
	})
	if path := os.Getenv(output); path != "" {
		check.Must(t, os.WriteFile(path, check.Value(json.Marshal(ways))(t), 0o600))
	}
}
