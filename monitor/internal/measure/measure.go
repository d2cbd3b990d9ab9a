// Package measure has what the metrics of OpenTelemetry and of Prometheus share: the values, but not the
// instruments.
package measure

import (
	"errors"
	"slices"
	"strings"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/observe"
)

var (
	// Buckets are those of the time that calls and renewals take, in seconds.
	Buckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	// HoldBuckets are those of the time for which locks are held.
	HoldBuckets = append(slices.Clone(Buckets), 300, 3600)
	// Losses are the reasons for which a lease is lost.
	Losses = []observe.EndReason{observe.EndExpired, observe.EndTaken}
)

// Text returns the value of a label, which has to be UTF-8: a function may cut a key inside of a
// character, and exporters refuse it, some with all that they were to send.
func Text(value string) string { return strings.ToValidUTF8(value, "\uFFFD") }

// End returns the label of how a lease has ended.
func End(reason observe.EndReason) string {
	if reason.Lost() {
		return "lost"
	}
	return string(reason)
}

// Renewal returns the label of the outcome of a renewal: "pinned" if the only thing that kept it from success is
// that rows were locked.
func Renewal(err error) string {
	switch {
	case err == nil:
		return "renewed"
	case errors.Is(err, sqllock.ErrPinned) && !errors.Is(err, sqllock.ErrDatabase):
		return "pinned"
	default:
		return "error"
	}
}
