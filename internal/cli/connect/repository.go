package connect

import (
	"context"
	"errors"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/cli/exit"
)

// Repository returns the lock table that the flags choose.
func (f *Flags) Repository(c *Connection, opts sqllock.RepositoryOptions) (*sqllock.Repository, error) {
	opts.Region, opts.Prefix, opts.Keys = f.Region, f.Prefix, f.Keys()
	r, err := sqllock.NewRepository(c.DB, c.Dialect, &opts)
	return r, f.WithTableHint(c, err)
}

// WithTableHint adds the hint for a missing table.
func (f *Flags) WithTableHint(c *Connection, err error) error {
	if c.MissesTable(err) {
		return exit.WithHint(err, "%s", MigrateUp(f.Prefix))
	}
	return err
}

// WithRepository calls fn with the lock table that the flags choose. fn may not acquire
// locks: the table need not have fencing tokens, as Spring's own has not.
func (f *Flags) WithRepository(ctx context.Context, fn func(*sqllock.Repository) error) (err error) {
	c, err := f.Connect(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	r, err := f.Repository(c, sqllock.RepositoryOptions{WithoutFence: true}) //nolint:contextcheck // NewRepository takes none
	if err != nil {
		return err
	}
	return f.WithTableHint(c, fn(r))
}
