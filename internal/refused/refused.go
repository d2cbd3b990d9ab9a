// Package refused reports what an adapter refuses: the library that has called it may drop the error.
package refused

import (
	"context"
	"errors"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/observe"
)

// Report tells the observers of a registry, which may be nil, if err is an [sqllock.ErrInvalid]. It returns
// err.
func Report(ctx context.Context, registry *sqllock.Registry, key string, err error) error {
	if registry == nil || !errors.Is(err, sqllock.ErrInvalid) {
		return err
	}
	for _, o := range registry.Observers() {
		if o.Refusal != nil {
			o.Refusal(ctx, observe.Refusal{Key: key, Err: err})
		}
	}
	return err
}
