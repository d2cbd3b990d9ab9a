package connect

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/state"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/session/sqlitedriver"
	"github.com/sqllock/sqllock/internal/sqltext"
)

const defaultFile = "sqllock.db"

// Connect opens the database that the flags choose, and checks that it answers. Only
// the default SQLite file is created and migrated automatically; for any other
// database, its owner runs `sqllock migrate up`.
func (f *Flags) Connect(ctx context.Context) (*Connection, error) {
	c, err := f.Open(ctx, MustExist)
	if err != nil || !c.Default {
		return c, err
	}
	if err := migrateDefault(ctx, c, f.Prefix); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Open is Connect without migrations.
func (f *Flags) Open(ctx context.Context, file Presence) (*Connection, error) {
	names, err := sqltext.NamesFor(f.Prefix)
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	if f.Local && names.Schema != "" && !strings.EqualFold(names.Schema, "main") {
		return nil, exit.WithHint(exit.Usagef("the file of --local has no schema %s, which --prefix or $%s names", names.Schema, prefixVariable), "--prefix %s", names.Prefix)
	}
	chosen, isDefault, err := f.chosenDSN()
	if err != nil {
		return nil, err
	}
	target, err := ParseDSN(chosen)
	if err != nil {
		return nil, err
	}
	c := &Connection{Dialect: target.Dialect, Target: target, Name: target.Redacted, Default: isDefault}
	need := session.Need{Connections: maxConnections, BriefWaits: f.BriefWaits, Create: isDefault || file == MayCreate, Unverified: f.Unverified}
	switch c.pools, err = target.Connect(ctx, need); {
	case errors.Is(err, sqllock.ErrInvalid):
		return nil, err // says what the server is
	case err != nil:
		err = failure.As(sqllock.ErrDatabase, "connect to "+c.Name, failure.WithCure(err))
		return nil, withOpenHint(err, target, f.Prefix, isDefault, file)
	}
	c.DB = c.pools.DB
	return c, nil
}

// maxConnections is enough: one acquires and renews, the other reads.
const maxConnections = 2

// givenDSN returns the DSN of the flag, else that of the environment, or "" with --local. Nothing else
// chooses the default file: a user who forgot the DSN would exclude no other machine, and would see held locks as free.
func (f *Flags) givenDSN() (string, error) {
	fromEnvironment, isSet := os.LookupEnv(DSNVariable)
	switch {
	case f.Local && f.DSN != "":
		return "", exit.Usagef("--local and --dsn exclude each other")
	case f.Local || f.DSN != "":
		return f.DSN, nil
	case fromEnvironment != "":
		return fromEnvironment, nil
	case isSet:
		return "", exit.WithHint(exit.Usagef("%s is empty", DSNVariable), "a DSN; or, for locks on this machine alone, --local")
	default:
		return "", exit.WithHint(exit.Usagef("no database is given"), "--dsn, or %s; or, for locks on this machine alone, --local", DSNVariable)
	}
}

// Dialect returns that of the database which the flags choose, without opening it.
func (f *Flags) Dialect() (dialect.Dialect, error) {
	chosen, _, err := f.chosenDSN()
	if err != nil {
		return dialect.Dialect{}, err
	}
	target, err := ParseDSN(chosen)
	return target.Dialect, err
}

// CheckChosen returns a usage error if the command line and the environment choose no database.
func (f *Flags) CheckChosen() error {
	_, err := f.givenDSN()
	return err
}

// chosenDSN returns the DSN of the flag, else that of the environment, or with --local that of
// the default file, whose directory it creates.
func (f *Flags) chosenDSN() (chosen string, isDefault bool, err error) {
	if chosen, err = f.givenDSN(); !f.Local || err != nil {
		return chosen, false, err
	}
	directory, err := state.Directory()
	if err != nil {
		return "", false, exit.WithHint(exit.Usagef("no directory for the file of --local: %w", err), "--dsn sqlite:/path/to/locks.db")
	}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		err = failure.As(sqllock.ErrDatabase, "create the directory of --local", err)
		return "", false, exit.WithHint(err, "%s", defaultFileHint)
	}
	return sqlitedriver.DSN(filepath.Join(directory, defaultFile)), true, nil
}

// WouldCreateDatabase reports whether Connect would create the default file, because it is not
// there yet.
func (f *Flags) WouldCreateDatabase() bool {
	if !f.Local {
		return false
	}
	directory, err := state.Directory()
	if err != nil {
		return true
	}
	_, err = os.Stat(filepath.Join(directory, defaultFile))
	return err != nil
}

// WithDatabase opens the database that the flags choose, without migrations, and calls
// fn with it.
func (f *Flags) WithDatabase(ctx context.Context, file Presence, fn func(*Connection) error) error {
	c, err := f.Open(ctx, file)
	if err != nil {
		return err
	}
	defer c.Close()
	return fn(c)
}
