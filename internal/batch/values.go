package batch

import "context"

// A valuesContext ends with a batch, and has the values of its caller's context.
type valuesContext struct {
	context.Context

	caller context.Context
}

// Value implements context.Context. The batch's own context has no values but what package context finds the parent
// by, of which a context is made.
func (c valuesContext) Value(key any) any {
	if value := c.Context.Value(key); value != nil {
		return value
	}
	return c.caller.Value(key)
}
