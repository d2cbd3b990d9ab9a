// Package locktable reads and writes the lock table; the root package sends no SQL. It knows
// rows and claims, but no lease, no registry and no key as the user wrote it.
//
// A row belongs to the CLIENT_ID that stands in it, here called the holder, until it expires by
// the clock of the database. Each acquisition has a holder of its own, so a late statement of
// one never touches the row of another. Durations cross the border, instants never do.
//
// The README beside this file says what the statements are, and why.
package locktable
