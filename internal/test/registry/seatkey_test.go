package registry_test

import (
	"testing"

	"github.com/sqllock/sqllock/internal/seatkey"
)

func TestSeatKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key              string
		of, kind, number string
	}{
		{seatkey.Seat("render", seatkey.Permit, 12), "render", seatkey.Permit, "12"},
		{seatkey.Seat("a permit 3", seatkey.Reader, 0), "a permit 3", seatkey.Reader, "0"},
		{seatkey.Turn("render", seatkey.Permit), "render", seatkey.Permit, seatkey.TurnNumber},
		{key: "render permit 02"},
		{key: "render permits 2"},
		{key: " permit 2"},
		{key: "render permit"},
	} {
		of, kind, number, ok := seatkey.Parse(c.key)
		if of != c.of || kind != c.kind || number != c.number || ok != (c.of != "") || seatkey.IsTurn(c.key) != (c.number == seatkey.TurnNumber) {
			t.Errorf("%q: %q, %q, %q, %v", c.key, of, kind, number, ok)
		}
		if !ok {
			continue
		}
		if kind, number, key, ok := seatkey.ParseName(seatkey.Name(c.kind, c.number, "two\nlines of it")); !ok || kind != c.kind || number != c.number || key != "two\nlines of it" {
			t.Errorf("its name is read as %q, %q, %q", kind, number, key)
		}
	}
}
