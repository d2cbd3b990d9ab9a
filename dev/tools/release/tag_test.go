package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newCheckout makes a repository with a root module, and a leaf that requires v0.1.0 of it.
func newCheckout(t *testing.T) checkout {
	t.Helper()
	for name, value := range map[string]string{
		"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_SYSTEM": os.DevNull, "GOFLAGS": "-mod=mod", "GOPROXY": "off", "GONOSUMDB": "*", "GOWORK": "off",
		"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com",
	} {
		t.Setenv(name, value)
	}
	git := checkout{t.TempDir()}
	git.write(t, "dev/tools/release/modules.txt", "# comment\n. v0.1.0\n")
	git.write(t, "go.mod", "module example.com/a\n\ngo 1.25.0\n")
	git.write(t, "CHANGELOG.md", "# Changelog\n\n## [0.1.0] - 2026-11-22\n")
	git.must(t, "init", "-q")
	git.commit(t)
	return git
}

func (c checkout) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (c checkout) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := c.git(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (c checkout) commit(t *testing.T) {
	t.Helper()
	c.must(t, "add", "-A")
	c.must(t, "commit", "-q", "--allow-empty", "-m", "x")
}

func tagged(t *testing.T, git checkout, write bool) string {
	t.Helper()
	var out strings.Builder
	if err := tag(t.Context(), &out, git, write); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTag(t *testing.T) {
	git := newCheckout(t)
	if got := tagged(t, git, false); got != "v0.1.0\tdue\n" || git.must(t, "tag") != "" {
		t.Errorf("a dry run: %s, tags %s", got, git.must(t, "tag"))
	}
	if got := tagged(t, git, true); !strings.HasSuffix(got, "git push origin v0.1.0\n") || git.must(t, "tag") != "v0.1.0" {
		t.Errorf("%s, tags %s", got, git.must(t, "tag"))
	}
	if got := tagged(t, git, true); got != "v0.1.0\texists\n" {
		t.Error(got)
	}
}

func TestTagRefusesAnUntidyTree(t *testing.T) {
	for name, change := range map[string]func(git checkout){
		"differs from the commit": func(git checkout) { git.write(t, "new", "") },
		"go mod tidy -diff": func(git checkout) {
			git.write(t, "go.mod", "module example.com/a\n\ngo 1.25.0\n\nrequire example.com/unused v1.0.0\n")
			git.write(t, "go.sum", "example.com/unused v1.0.0 h1:x\n")
			git.commit(t)
		},
		"no section": func(git checkout) { git.write(t, "CHANGELOG.md", "# Changelog\n"); git.commit(t) },
		"not a directory and a version": func(git checkout) {
			git.write(t, "dev/tools/release/modules.txt", ". 0.1\n")
			git.commit(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			git := newCheckout(t)
			change(git)
			var out strings.Builder
			if err := tag(t.Context(), &out, git, true); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%v\n%s", err, out.String())
			}
			if tags := git.must(t, "tag"); tags != "" {
				t.Errorf("tags %s", tags)
			}
		})
	}
}

// A leaf is tagged when the version of the root that it requires is, and not before.
func TestReady(t *testing.T) {
	git := newCheckout(t)
	root, leaf := released{".", "v0.1.0"}, released{"leaf", "v0.3.0"}
	if leaf.tag() != "leaf/v0.3.0" {
		t.Error(leaf.tag())
	}
	for _, step := range []struct{ mod, tag, want string }{
		{"require example.com/a v0.1.0", "", "which has no tag"},
		{"require example.com/a v0.1.0", "v0.1.0", ""},
		{"require example.com/a v0.1.0\nreplace example.com/a => ..", "", "replace"},
		{"require example.com/a v0.0.9", "v0.0.9", "go -C leaf get example.com/a@v0.1.0"},
	} {
		git.write(t, "leaf/go.mod", "module example.com/a/leaf\n\ngo 1.25.0\n\n"+step.mod+"\n")
		if step.tag != "" {
			git.must(t, "tag", step.tag)
		}
		err := ready(t.Context(), git, leaf, []released{root, leaf})
		if (err == nil) != (step.want == "") || err != nil && !strings.Contains(err.Error(), step.want) {
			t.Errorf("%s: %v, want %q", step.mod, err, step.want)
		}
	}
}
