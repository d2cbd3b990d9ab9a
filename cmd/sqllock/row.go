package main

import (
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/sqllock/sqllock"
)

// The states of a lock, as list and show name them.
const (
	stateHeld    = "held"
	stateExpired = "expired"
	stateFree    = "free"
)

// A rowView is a row as the commands show it. Its JSON form is documented in
// docs/cli.md and only ever grows. What is not known, or not there, is null.
type rowView struct {
	Key     *string  `json:"key"`
	LockKey string   `json:"lock_key"`
	Region  string   `json:"region"`
	State   string   `json:"state"`
	Holder  *string  `json:"holder"`
	Age     *float64 `json:"age_seconds"`
	Left    *float64 `json:"left_seconds"`
	Expired bool     `json:"expired"`

	age, left time.Duration
}

func viewOf(row sqllock.Row, book nameBook) rowView {
	v := rowView{
		LockKey: row.LockKey, Region: row.Region, State: stateHeld, Expired: row.Expired(),
		Holder: &row.Holder, Age: seconds(row.Age), Left: seconds(row.Left),
		age: row.Age, left: row.Left,
	}
	if row.Expired() {
		v.State = stateExpired
	}
	if key, known := book.keyOf(row.LockKey); known {
		v.Key = &key
	}
	return v
}

// viewsOf is never nil: an empty list is [] in JSON.
func viewsOf(rows []sqllock.Row, book nameBook) []rowView {
	views := make([]rowView, len(rows))
	for i, row := range rows {
		views[i] = viewOf(row, book)
	}
	return views
}

// seconds keeps milliseconds: a finer number is noise that hurts the eye.
func seconds(d time.Duration) *float64 {
	s := float64(d.Milliseconds()) / 1000
	return &s
}

// keyText is the key, or a dash.
func (v rowView) keyText() string {
	if v.Key == nil {
		return "-"
	}
	return printable(*v.Key)
}

// holderText is the holder, or a dash.
func (v rowView) holderText() string {
	if v.Holder == nil || *v.Holder == "" {
		return "-"
	}
	return printable(*v.Holder)
}

// leftText is the time left, or since when there is none.
func (v rowView) leftText() string {
	if v.Expired {
		return "ended " + short(-v.left) + " ago"
	}
	return short(v.left)
}

// short writes a duration as people read it: two units at most.
func short(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	case d < 2*day:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	default:
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
}

// printable returns text that does no harm to a terminal, nor to a script that
// splits at tabs and lines: whoever can write to the table can write anything.
func printable(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

// writeJSON prints a value as indented JSON.
func writeJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
