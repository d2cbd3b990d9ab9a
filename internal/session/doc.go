// Package session opens databases as locks need them: it reads a DSN, chooses the settings of the sessions, opens
// small pools, and makes a registry over them. It links no driver. The packages below it each know one, so that an
// application links only the driver it chooses.
//
//	pgxlock.Open, pqlock.Open, …   the public packages, one for each driver
//	pgxdriver.Parse, …             a DSN becomes a Target
//	Open                           a Target becomes a registry
//	Target.Connect                 pools for a target; cmd/sqllock/internal/connect calls it as well
package session
