package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

// Pools are the pools over one target, and how acquisitions use them.
type Pools struct {
	DB *sqlx.DB
	// Pooler is why the settings of sessions are not relied on, or nil.
	Pooler error
}

// A Need says what pools are wanted.
type Need struct {
	Connections int  // how many at most
	Create      bool // SQLite: create a file that does not exist
}

// Connect opens the pools, and checks that the database answers. Behind a pooler that refuses
// the parameters of a session it connects without them.
func (t Target) Connect(ctx context.Context, n Need) (*Pools, error) {
	db, err := t.connect(ctx, Settings{}, n.Create, n.Connections)
	if !refusesParameters(err) {
		if err != nil {
			return nil, err
		}
		return &Pools{DB: db}, nil
	}
	pooler := fmt.Errorf("a pooler does not accept the settings of a session: %w", err)
	if db, err = t.connect(ctx, Settings{Pooled: true}, n.Create, n.Connections); err != nil {
		return nil, err
	}
	return &Pools{DB: db, Pooler: pooler}, nil
}

// refusesParameters reports whether err is a pooler's answer to parameters of the session that
// it cannot keep: PgBouncer's protocol_violation.
func refusesParameters(err error) bool {
	var state interface{ SQLState() string }
	return errors.As(err, &state) && state.SQLState() == "08P01"
}

// closeTimeout limits how long a database that does not answer keeps Close.
const closeTimeout = 10 * time.Second

// Close closes the pools.
func (p *Pools) Close() error { return p.DB.Close() }
