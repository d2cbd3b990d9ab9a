package page_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sqllock/sqllock/dev/reliability/internal/page"
	"github.com/sqllock/sqllock/internal/test/check"
)

func TestReplaceKeepsTheText(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "page.md")
	const text = "a\n<!-- figures: x -->\nold\n<!-- end -->\nb\n<!-- figures: y -->\nold\n<!-- end -->\n"
	check.Must(t, os.WriteFile(path, []byte(text), 0o600))
	check.Must(t, page.Replace(path, "y", "new\n"))
	got, err := os.ReadFile(path)
	want := "a\n<!-- figures: x -->\nold\n<!-- end -->\nb\n<!-- figures: y -->\nnew\n<!-- end -->\n"
	if err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
	if err := page.Replace(path, "z", ""); err == nil {
		t.Error("there is no z")
	}
}

func TestPutRow(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "page.md")
	const text = "a\n<!-- figures: x -->\n| k | n |\n|---|---|\n| one | 1 |\n| one more | 2 |\n<!-- end -->\nb\n"
	check.Must(t, os.WriteFile(path, []byte(text), 0o600))
	for key, n := range map[string]int{"one": 3, "two": 4} {
		check.Must(t, page.PutRow(path, "x", 1, key, n))
	}
	got, err := os.ReadFile(path)
	want := "a\n<!-- figures: x -->\n| k | n |\n|---|---|\n| one | 3 |\n| one more | 2 |\n| two | 4 |\n<!-- end -->\nb\n"
	if err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
	if err := page.PutRow(path, "z", 1, "one"); err == nil {
		t.Error("there is no z")
	}
}
