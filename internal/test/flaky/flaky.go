package flaky

import (
	"context"
	"database/sql/driver"
	"fmt"
	"sync/atomic"
)

// An Op is a kind of operation.
type Op string

// The operations that can fail.
const (
	Begin    Op = "begin"
	Exec     Op = "exec"
	Query    Op = "query"
	Commit   Op = "commit"
	Rollback Op = "rollback"
)

// A Moment is the time before an operation runs, or the time after it has run and before its
// caller gets the result.
type Moment struct {
	N    int // the number of the operation since the last Follow, from 1
	Op   Op
	Done bool
}

// String describes the moment.
func (m Moment) String() string {
	if m.Done {
		return fmt.Sprintf("after %s (%d)", m.Op, m.N)
	}
	return fmt.Sprintf("before %s (%d)", m.Op, m.N)
}

// A Plan decides what happens at a moment: if it returns an error, the operation fails with
// it. It is called by several goroutines.
type Plan func(ctx context.Context, m Moment) error

// A Connector is a driver.Connector whose connections follow a plan. It is safe
// for concurrent use.
type Connector struct {
	driver driver.Driver
	dsn    string
	plan   atomic.Pointer[Plan]
	count  atomic.Int64
}

// New returns a connector to dsn through d. It has no plan, so nothing fails. The
// connections of d must implement the context-aware interfaces.
func New(d driver.Driver, dsn string) *Connector {
	return &Connector{driver: d, dsn: dsn}
}

// Follow sets the plan, or no plan if it is nil, and counts operations from 1 again.
func (c *Connector) Follow(plan Plan) {
	c.count.Store(0)
	if plan == nil {
		c.plan.Store(nil)
		return
	}
	c.plan.Store(&plan)
}

// Count returns the number of operations since the last Follow.
func (c *Connector) Count() int { return int(c.count.Load()) }

// Connect implements driver.Connector.
func (c *Connector) Connect(context.Context) (driver.Conn, error) {
	inner, err := c.driver.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: inner, connector: c}, nil
}

// Driver implements driver.Connector.
func (c *Connector) Driver() driver.Driver { return c.driver }

// do runs one operation under the plan. If its context ends while the plan delays it, the
// operation runs nevertheless: a statement that was sent cannot be recalled.
func do[R any](ctx context.Context, c *conn, op Op, run func(context.Context) (R, error)) (R, error) {
	n := int(c.connector.count.Add(1))
	plan := c.connector.plan.Load()
	if plan == nil {
		return run(ctx)
	}
	var none R
	if err := (*plan)(ctx, Moment{n, op, false}); err != nil {
		c.broken = true
		return none, err
	}
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	result, err := run(ctx)
	if err != nil {
		return none, err
	}
	if err := (*plan)(ctx, Moment{n, op, true}); err != nil {
		c.broken = true
		return result, err
	}
	return result, nil
}
