// Package flaky makes a database fail at a chosen moment, for tests: it wraps a
// database/sql driver and asks before and after every operation whether that one
// is to fail. What is underneath stays a real database, so what a lost answer
// leaves behind is real too.
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

// A Moment is one side of one operation: before it is done, or after, when it is
// done but the caller has not learnt of it.
type Moment struct {
	N    int // operations are counted from 1 since the last Plan
	Op   Op
	Done bool
}

// String says which moment it is.
func (m Moment) String() string {
	if m.Done {
		return fmt.Sprintf("after %s (%d)", m.Op, m.N)
	}
	return fmt.Sprintf("before %s (%d)", m.Op, m.N)
}

// A Plan decides what happens at a moment: the error it returns is what the
// operation ends with. It is called by many goroutines.
type Plan func(ctx context.Context, m Moment) error

// A Connector is a driver.Connector whose connections follow a plan. It is safe
// for concurrent use.
type Connector struct {
	driver driver.Driver
	dsn    string
	plan   atomic.Pointer[Plan]
	count  atomic.Int64
}

// New returns a connector to dsn through d, with no plan: nothing fails. The
// connections of d must implement the context-aware interfaces.
func New(d driver.Driver, dsn string) *Connector {
	return &Connector{driver: d, dsn: dsn}
}

// Follow sets the plan, or none for nil, and counts operations from 1 again.
func (c *Connector) Follow(plan Plan) {
	c.count.Store(0)
	if plan == nil {
		c.plan.Store(nil)
		return
	}
	c.plan.Store(&plan)
}

// Count returns how many operations there were since the last Follow.
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

// do runs one operation as the plan has it. If its context ends while the plan
// holds it back, it is done all the same: what has been sent is not recalled.
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
