package dialect

import "regexp"

// KeptMark stands in place of the first of the eleven digits that a holder of sqllock ends with, in
// a row that stays for the rest of a minimum hold. It is no hexadecimal digit, so that no
// acquisition and no UUID of Spring has it there.
const KeptMark = "k"

var keptForm = regexp.MustCompile("-" + KeptMark + "[0-9a-f]{10}$")

// IsKept reports whether a row with this CLIENT_ID stays for the rest of a minimum hold, so that nothing works
// under its lock any more. Like [Statements], it serves sqllock's own packages.
func IsKept(holder string) bool { return keptForm.MatchString(holder) }
