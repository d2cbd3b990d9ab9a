package javaclient

import (
	"errors"
	"fmt"
	"strings"
)

// ErrMissing is in the error of [Build] when this machine has no JDK, no Maven or
// no way to the jars, and cannot be given them.
var ErrMissing = errors.New("not available")

// A JavaError is what the Java side threw.
type JavaError struct {
	// Class is its full name, java.util.ConcurrentModificationException for example.
	Class string
	// Message is its message and those of its causes.
	Message string
}

// Error returns class and message.
func (e *JavaError) Error() string { return fmt.Sprintf("%s: %s", e.Class, e.Message) }

// Threw tells whether err is an exception of the class, named without its package.
func Threw(err error, class string) bool {
	var e *JavaError
	return errors.As(err, &e) && (e.Class == class || strings.HasSuffix(e.Class, "."+class))
}
