package page

import "github.com/sqllock/sqllock"

// A page is what the addresses of the page share.
type page struct {
	registry *sqllock.Registry
	options  Options
	reader   *reader
	checks   *checks
}
