package failure

import (
	_ "embed" // for the table
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A Cure says what a group of the drivers' errors means to a user, and what to try. Other advice stands where it is known
// what is wrong:
//
//	failure.go                           tables that are missing: [tableError]
//	probe/fault.go, probe/schema.go      faults of the tables; the statement Tables has those that one database knows
//	probe/engines.tsv                    servers that are not supported
//	turns/turn.go                        why Fair has no effect
//	session/open.go                      what the options of Open could do
//	cmd/sqllock/internal/connect/hint.go what flags could do, and all else for the command, which prints a hint apart
//	cmd/sqllock/internal/doctor          what a check has found
type Cure struct {
	// Signs are SQLSTATEs of PostgreSQL or what they begin with, error numbers of MySQL and MariaDB, and texts of drivers
	// and of the network, which are in English everywhere.
	Signs []string
	// Cause and Text are one line together: "cause: text".
	Cause, Text string
}

//go:embed cures.tsv
var table string

// Cures returns the rows of cures.tsv, in which the signs are separated by semicolons. The first that fits an error
// counts.
var Cures = sync.OnceValue(func() (all []Cure) {
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "\t")
		all = append(all, Cure{Signs: strings.Split(cells[0], "; "), Cause: cells[1], Text: cells[2]})
	}
	return all
})

// unknownVariable and wrongValue are ER_UNKNOWN_SYSTEM_VARIABLE and ER_WRONG_VALUE_FOR_VAR.
const unknownVariable, wrongValue = "1193", "1231"

// IsOfParameter reports whether the server refuses a parameter of the session. The driver's error has its name in quotes.
func (c *Cure) IsOfParameter() bool {
	return slices.Contains(c.Signs, unknownVariable) || slices.Contains(c.Signs, wrongValue)
}

var (
	isCode = regexp.MustCompile(`^[0-9A-Z]{2,5}$`)
	quoted = regexp.MustCompile(`["'«„](\w[\w.]*)["'»“]`)
	// refusedTLS is the line of pgx about a connection with TLS, with sslmode=prefer. The next line says what came of the
	// one without.
	refusedTLS = regexp.MustCompile(`(?m)^\t.*: tls error: server refused TLS connection\n`)
	// mysqlNumber finds the number in the text of go-sql-driver's errors, which have no method for it. Importing the
	// driver would link it into every application.
	mysqlNumber = regexp.MustCompile(`\bError (\d{4})(?: \(\w{5}\))?: `)
)

// CureOf returns the cure for an error, or nil.
func CureOf(err error) *Cure {
	text, code := refusedTLS.ReplaceAllString(err.Error(), ""), ""
	var state interface{ SQLState() string }
	if errors.As(err, &state) {
		code = state.SQLState()
	} else if found := mysqlNumber.FindStringSubmatch(text); found != nil {
		code = found[1]
	}
	is := func(sign string) bool {
		if isCode.MatchString(sign) {
			return strings.HasPrefix(code, sign)
		}
		return strings.Contains(text, sign)
	}
	if at := slices.IndexFunc(Cures(), func(c Cure) bool { return slices.ContainsFunc(c.Signs, is) }); at >= 0 {
		return &Cures()[at]
	}
	return nil
}

// WithCure returns an error whose text begins with a line that says what err means and what to try, if that is known.
// The driver's text is on the next line. It wraps err, which may be nil.
func WithCure(err error) error {
	if err == nil || CureOf(err) == nil {
		return err
	}
	return &curedError{err}
}

type curedError struct{ error }

// Error implements error.
func (e *curedError) Error() string {
	cure, text := CureOf(e.error), e.error.Error()
	cause := cure.Cause
	if name := quoted.FindStringSubmatch(text); name != nil && cure.IsOfParameter() {
		cause += fmt.Sprintf(", %q", name[1])
	}
	return cause + ": " + cure.Text + "\n" + refusedTLS.ReplaceAllString(text, "")
}

func (e *curedError) Unwrap() error { return e.error }
