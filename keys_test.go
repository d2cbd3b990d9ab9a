package sqllock_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sqllock/sqllock"
)

// TestSpringKeys has vectors of java.util.UUID.nameUUIDFromBytes.
func TestSpringKeys(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"foo":                                  "acbd18db-4cc2-385c-adef-654fccc4a4d8",
		"hello":                                "5d41402a-bc4b-3a76-b971-9d911017c592",
		"ключ":                                 "c3657b66-c60a-3072-92aa-e11f07b04ae7",
		"7B0A2F5C-3C57-4F43-9E7C-0B0F6D1F2A3B": "7b0a2f5c-3c57-4f43-9e7c-0b0f6d1f2a3b",
		"00000000-0000-0000-0000-000000000000": "00000000-0000-0000-0000-000000000000",
	} {
		got, err := sqllock.SpringKeys(key)
		if err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", key, got, err, want)
		}
	}
	for _, key := range []string{"", "\xff", "a\xc3"} {
		if _, err := sqllock.SpringKeys(key); !errors.Is(err, sqllock.ErrInvalid) {
			t.Errorf("%q: %v", key, err)
		}
	}
}

func TestPlainKeys(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"k", " k", "orders/42", "ключ", strings.Repeat("é", 36)} {
		if got, err := sqllock.PlainKeys(key); got != key || err != nil {
			t.Errorf("%q: %q, %v", key, got, err)
		}
	}
	for _, key := range []string{"", "k ", " ", "k\x00", "a\nb", "\xff", strings.Repeat("k", 37), strings.Repeat("é", 37)} {
		if _, err := sqllock.PlainKeys(key); !errors.Is(err, sqllock.ErrInvalid) {
			t.Errorf("%q: %v", key, err)
		}
	}
}

func FuzzKeys(f *testing.F) {
	f.Add("orders/42")
	f.Add("7B0A2F5C-3C57-4F43-9E7C-0B0F6D1F2A3B")
	f.Add("k ")
	f.Fuzz(func(t *testing.T, key string) {
		for _, mapper := range []sqllock.KeyMapper{sqllock.SpringKeys, sqllock.PlainKeys} {
			got, err := mapper(key)
			if err != nil {
				if !errors.Is(err, sqllock.ErrInvalid) {
					t.Errorf("%q: %v", key, err)
				}
				continue
			}
			if n := utf8.RuneCountInString(got); n == 0 || n > 36 || strings.HasSuffix(got, " ") {
				t.Errorf("%q gives %q", key, got)
			}
		}
	})
}
