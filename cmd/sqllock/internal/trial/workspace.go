package trial

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/internal/session/sqlitedriver"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/migrations"
)

// A workspace is what the workers of one trial share: a directory and tables, which are
// removed with it.
type workspace struct {
	flags      connect.Flags // with the DSN and prefix of the workspace
	directory  string
	connection *connect.Connection
	place      string // where the lock is, for people
	values     string // a table beside those of the lock, or ""
}

// newWorkspace creates a workspace, and makes ttl as long as the database needs it. After an error nothing is left of it.
func newWorkspace(ctx context.Context, flags *connect.Flags, trial string, ttl *time.Duration) (*workspace, error) {
	names, err := sqltext.NamesFor(flags.Prefix)
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	w := &workspace{flags: *flags}
	if flags.DSN == "" {
		names.Schema = "" // the temporary file has none, whatever $SQLLOCK_PREFIX says
	}
	w.flags.Prefix = uniquePrefix(names.Schema, trial)
	if w.directory, err = os.MkdirTemp("", "sqllock-trial-"); err != nil {
		return nil, fmt.Errorf("create a directory: %w", err)
	}
	if err := w.fill(ctx); err != nil {
		return nil, errors.Join(err, w.remove(ctx))
	}
	*ttl = max(*ttl, sqltext.Of(w.connection.Dialect).LeastTTL)
	return w, nil
}

// fill creates the counter and the tables.
func (w *workspace) fill(ctx context.Context) (err error) {
	if err := writeCounter(w.directory, 0); err != nil {
		return err
	}
	temporary := w.flags.DSN == ""
	if temporary {
		w.flags.Local = false // it is as local
		w.flags.DSN = sqlitedriver.DSN(filepath.Join(w.directory, "locks.db"))
	}
	if w.connection, err = w.flags.Open(ctx, connect.Presence(temporary)); err != nil {
		return err
	}
	c := w.connection
	w.place = c.Name
	if temporary {
		w.place = "a temporary SQLite file"
	}
	return connect.MigrationError(ctx, "create tables of its own",
		migrations.Up(ctx, c.SQL(), c.Dialect, &migrations.Options{Prefix: w.flags.Prefix}))
}

// uniquePrefix returns a prefix that no other trial and no application uses.
func uniquePrefix(schema, trial string) string {
	prefix := "SQLLOCK_" + trial + "_" + strings.ToUpper(rand.Text()[:8]) + "_"
	if schema != "" {
		prefix = schema + "." + prefix
	}
	return prefix
}

// remove removes the tables and the directory, even if ctx has ended.
func (w *workspace) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	var dropped error
	if c := w.connection; c != nil {
		c.DB.SetMaxIdleConns(0) // Dolt drops nothing in a session that has the tables as they were
		if w.values != "" {
			_, _ = c.DB.ExecContext(ctx, "DROP TABLE "+w.values) // an error is that of the next statements, too
		}
		dropped = connect.MigrationError(ctx, "drop the tables "+w.flags.Prefix+"…",
			migrations.Goto(ctx, c.SQL(), c.Dialect, 0, &migrations.Options{Prefix: w.flags.Prefix, Force: true}))
		c.Close()
	}
	return errors.Join(dropped, os.RemoveAll(w.directory))
}

// counterForm is the content of the counter's file: a number with a fixed width, so that
// writing a number always replaces the whole previous one.
const counterForm = "%019d\n"

func readCounter(directory string) (value int, err error) {
	text, err := os.ReadFile(counterFile(directory))
	if err == nil {
		value, err = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	if err != nil {
		return 0, fmt.Errorf("read the counter: %w", err)
	}
	return value, nil
}

// writeCounter writes in place: a file that is truncated first could be read when it is empty.
func writeCounter(directory string, value int) error {
	f, err := os.OpenFile(counterFile(directory), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("write the counter: %w", err)
	}
	_, err = f.WriteAt(fmt.Appendf(nil, counterForm, value), 0)
	return errors.Join(err, f.Close())
}

func counterFile(directory string) string { return filepath.Join(directory, "counter") }
