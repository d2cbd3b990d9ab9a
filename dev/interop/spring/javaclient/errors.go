package javaclient

import (
	"errors"
	"fmt"
	"strings"
)

// ErrMissing is wrapped by the error of [Build] if the JDK, Maven or the jars are missing and
// cannot be installed.
var ErrMissing = errors.New("not available")

// A JavaError is an exception of the Java program.
type JavaError struct {
	// Class is its full name, for example java.util.ConcurrentModificationException.
	Class string
	// Message is its message, with those of its causes.
	Message string
}

// Error returns class and message.
func (e *JavaError) Error() string { return fmt.Sprintf("%s: %s", e.Class, e.Message) }

// Threw reports whether err is an exception of the class, given without its package.
func Threw(err error, class string) bool {
	var e *JavaError
	return errors.As(err, &e) && (e.Class == class || strings.HasSuffix(e.Class, "."+class))
}
