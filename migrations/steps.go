package migrations

import (
	"context"
	"fmt"

	"github.com/golang-migrate/migrate/v4"

	"github.com/sqllock/sqllock/dialect"
)

// migrate migrates from one version to another, step by step.
func (s *session) migrate(ctx context.Context, from State, target uint) error {
	if target == 0 || from.Layout == dialect.Spring6 && target > spring6 {
		if err := s.refuseHeld(ctx, from, target); err != nil {
			return err
		}
	}
	began := from.begin(target)
	if began == target {
		return nil
	}
	if err := s.exec(ctx, s.bookkeeping.fill(s.flavour.bookkeeping)); err != nil {
		return err
	}
	files, err := newFiles(s.settings)
	if err != nil {
		return err
	}
	d := &stepper{ctx: ctx, session: s, version: began}
	if target == latest && (from.Layout == 0 || s.begun) {
		// Where a change of the schema commits, the next call finds a table without EXPIRED_AFTER if
		// this one is interrupted. Only the record of versions says that no Spring made it.
		if err := s.record(ctx, none); err != nil {
			return err
		}
		d.only = latest
	}
	m, err := migrate.NewWithInstance("embed", files, s.dialect.Name, d)
	if err != nil {
		return err
	}
	direction := 1
	if target < began {
		direction = -1
	}
	// One step at a time: golang-migrate reads the following files in goroutines, which
	// never end if an earlier file gives an error.
	for d.version != target {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("stopped at version %d: %w", d.version, err)
		}
		if err := m.Steps(direction); err != nil {
			return fmt.Errorf("%s from version %d: %w", word(direction), d.version, err)
		}
	}
	return nil
}

func word(direction int) string {
	if direction < 0 {
		return "down"
	}
	return "up"
}
