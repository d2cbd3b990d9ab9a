// Package load contains the loads under which contenders are measured, each in a file of its
// own.
package load

import (
	"context"
	"errors"

	"github.com/sqllock/sqllock/dev/bench/internal/contender"
	"github.com/sqllock/sqllock/dev/bench/internal/record"
)

// A Load is one kind of work.
type Load struct {
	// Name is the name in the data and in a contender's Loads.
	Name string
	// If Remote is true, the load needs a server.
	Remote bool
	// Run measures one round.
	Run func(ctx context.Context, a *Arena, c contender.Contender) (record.Round, error)
}

// All returns all loads in the order of a run.
func All() []Load {
	return []Load{
		pairs(1), pairs(16), pairs(64), pairs(256), delay(1), delay(64),
		hotKey(), handOff(), waiters(), tenKeys(1), tenKeys(16),
	}
}

// Enter returns the contenders that take part.
func (l Load) Enter(all []contender.Contender) []contender.Contender {
	var field []contender.Contender
	for _, c := range all {
		if c.Enters(l.Name) {
			field = append(field, c)
		}
	}
	return field
}

// during opens a session, at the contender's place or another, for one task.
func during(ctx context.Context, c contender.Contender, at contender.Place, task func(contender.Session) error) error {
	session, err := c.Open(ctx, at)
	if err != nil {
		return err
	}
	return errors.Join(task(session), session.Close())
}
