package show

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/listing"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/sync/leader"
)

// FuzzRowsArePrinted prints rows that another writer of the table may have written: no character
// reaches the terminal that it would act on, a row is a line with eight columns, and JSON has the
// text as it is.
func FuzzRowsArePrinted(f *testing.F) {
	for _, text := range []string{"app-00000000001", "", "\x1b[2J\a", "\u009b31m", "evil\u202egpj", "a\tb\r\nc", "\xff\x00", "<b>&\u2028\x7f", "\U000e0041"} {
		f.Add(text, "k", "DEFAULT", int64(time.Second), int64(time.Minute))
		f.Add("h", text, text, int64(-time.Second), int64(-1<<63))
	}
	f.Fuzz(func(t *testing.T, holder, lockKey, region string, age, left int64) {
		row := sqllock.Row{Region: region, LockKey: lockKey, Holder: holder, Age: time.Duration(age), Left: time.Duration(left)}
		v := viewOf(listing.Named([]sqllock.Row{row}, nil)[0])
		now := leader.Leader{Client: holder, Holder: holder, Age: row.Age, Left: row.Left}
		var out strings.Builder
		printed := func(err error) string {
			t.Helper()
			check.Must(t, err)
			text := out.String()
			out.Reset()
			if i := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' }); i >= 0 || !utf8.ValidString(text) {
				t.Errorf("%q has a character at %d that is not printable", text, i)
			}
			return text
		}
		if line := printed(writeList(&out, []rowView{v}, false)); strings.Count(line, "\t") != 7 || strings.Count(line, "\n") != 1 {
			t.Errorf("%q is no line of eight columns", line)
		}
		for _, width := range []int{40, 400} {
			if table := printed(writeTable(&out, []rowView{v}, width)); strings.Count(table, "\n") != 5 {
				t.Errorf("%q is no table of one row", table)
			}
		}
		lines := 9
		if meanings[v.State] != "" {
			lines++
		}
		if text := printed(description{rowView: v}.write(&out)); strings.Count(text, "\n") != lines {
			t.Errorf("%q has not %d lines", text, lines)
		}
		printed(writeLeader(&out, lockKey, now, false))
		var read []rowView
		check.Must(t, json.Unmarshal([]byte(printed(writeList(&out, []rowView{v}, true))), &read))
		if got := read[0]; utf8.ValidString(strings.Join([]string{holder, lockKey, region}, "\n")) && (*got.Holder != holder || got.LockKey != lockKey || got.Region != region) {
			t.Errorf("JSON has %+v of %+v", got, row)
		}
	})
}
