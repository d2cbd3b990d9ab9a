package dialect

// A Layout is the set of columns of the lock table.
type Layout int

const (
	// Spring7 is the table of Spring Integration 7. Its column EXPIRED_AFTER holds the
	// instant at which the lease of a row ends. Migration 3 creates this layout.
	Spring7 Layout = iota + 1
	// Spring6 is the table of Spring Integration 4.3 to 6.x. It has no EXPIRED_AFTER:
	// each contender adds its own time-to-live to CREATED_DATE, so all contenders
	// must be configured with the same time-to-live.
	Spring6
)

// String returns the name that the command line uses for the layout.
func (l Layout) String() string {
	switch l {
	case Spring7:
		return "spring7"
	case Spring6:
		return "spring6"
	default:
		return "unknown"
	}
}
