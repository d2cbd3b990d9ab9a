package engine

import "github.com/sqllock/sqllock/internal/locktable"

// What packages of this module unwrap a value of package sqllock by, which sets these.
var (
	// LocksOf returns the locks of a *sqllock.Registry.
	LocksOf func(registry any) *Locks
	// TableOf returns the table of a *sqllock.Repository.
	TableOf func(repository any) *locktable.Table
	// UseOf returns the use that a *sqllock.Lease is a face of. A nil lease has a nil Use.
	UseOf func(lease any) *Use
)
