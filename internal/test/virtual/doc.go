// Package virtual makes databases for tests in virtual time, with the driver of package
// virtualsqlite.
package virtual
