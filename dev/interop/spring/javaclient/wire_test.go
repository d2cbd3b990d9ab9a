package javaclient

import (
	"errors"
	"slices"
	"testing"
)

func TestLines(t *testing.T) {
	t.Parallel()
	fields := []string{"1", "", " ", "a b", "a+b", "%", "\n", "\x00", "ключ", "😀", "\\"}
	line := encodeLine(fields...)
	got, err := decodeLine(line)
	if err != nil || !slices.Equal(got, fields) {
		t.Errorf("%q is read as %q, %v", line, got, err)
	}
}

func TestParseAnswer(t *testing.T) {
	t.Parallel()
	number, a, err := parseAnswer("7 ok true a+b")
	if number != "7" || err != nil || a.err != nil || !slices.Equal(a.values, []string{"true", "a b"}) {
		t.Errorf("%q, %+v, %v", number, a, err)
	}
	_, a, err = parseAnswer("8 error java.lang.IllegalStateException no+lock")
	if err != nil || !Threw(a.err, "IllegalStateException") || Threw(a.err, "StateException") {
		t.Errorf("%+v, %v", a, err)
	}
	for _, line := range []string{"", "9", "9 perhaps", "9 error", "9 ok %zz"} {
		if _, a, err := parseAnswer(line); !errors.Is(err, errProtocol) {
			t.Errorf("%q: %+v, %v", line, a, err)
		}
	}
}
