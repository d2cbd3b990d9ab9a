package clientid

import (
	"fmt"
	"testing"
)

func TestClientID(t *testing.T) {
	t.Parallel()
	random := []byte{0, 1, 2, 3, 25, 26, 31, 32, 33, 255, 64, 5}
	for _, c := range []struct {
		host string
		pid  int
		want string
	}{
		{"web-7", 4711, "web-7:4711:abcdz27ab7af"},
		{"web-7.example.com", 4711, "web-7:4711:abcdz27ab7af"},
		{"orders-6d4cf56db6-x7k2p", 1, "db6-x7k2p:1:abcdz27ab7af"},
		{"orders-x7k2p", 4194304, "k2p:4194304:abcdz27ab7af"},
		{"a-b", 4194304, "a-b:4194304:abcdz27ab7af"},
		{"büro 3", 7, "bro3:7:abcdz27ab7af"},
		{"", 7, "7:abcdz27ab7af"},
	} {
		if got := recognizable(c.host, c.pid, random); got != c.want || len(got) > Max {
			t.Errorf("%q, %d: %q, want %q", c.host, c.pid, got, c.want)
		}
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	for holder, want := range map[string]string{
		"web-7:4711:abcdz27ab7af-0123456789a":  "web-7:4711:abcdz27ab7af 0123456789a",
		"app-k123456789a":                      "app k123456789a kept",
		"app-0k23456789a":                      "", // the mark is in another place
		"app-0123456789":                       "",
		"app-0123456789A":                      "",
		"5f8b2c1e-0000-4000-8000-123456789abc": "", // Spring's
		"-0123456789a":                         "",
		"":                                     "",
	} {
		client, number, ok := Split(holder)
		got := ""
		if ok {
			got = client + " " + number
		}
		if IsKept(holder) {
			got += " kept"
		}
		if got != want || Of(holder) != client || IsOwn(holder) != ok {
			t.Errorf("%s: %q, want %q", holder, got, want)
		}
	}
}

func TestMaker(t *testing.T) {
	t.Parallel()
	var m Maker
	if err := m.Seed("app"); err != nil {
		t.Fatal(err)
	}
	for _, last := range []uint64{0, 0xfffffffffff, 0x1234500000000000} {
		m.last.Store(last)
		one, kept := m.Next(), m.NextKept()
		if want := fmt.Sprintf("app-%011x", (last+1)&(1<<bits-1)); one != want || Of(one) != "app" || IsKept(one) {
			t.Errorf("after %x: %q, want %q", last, one, want)
		}
		if want := fmt.Sprintf("app-k%010x", (last+2)&(1<<(bits-4)-1)); kept != want || Of(kept) != "app" || !IsKept(kept) {
			t.Errorf("after %x: kept %q, want %q", last, kept, want)
		}
	}
}
