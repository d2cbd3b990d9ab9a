package page

// A Severity says how bad a [Finding] is.
type Severity string

// The severities, as `sqllock doctor` has them.
const (
	Good   Severity = "good"
	Note   Severity = "note"
	Broken Severity = "broken"
)

// A Finding is the result of a check: a line of `sqllock doctor`.
type Finding struct {
	Severity Severity `json:"severity"`
	Subject  string   `json:"subject"`
	Text     string   `json:"text"`
	// Advice says what to do about it, or is "".
	Advice string `json:"advice,omitempty"`
}
