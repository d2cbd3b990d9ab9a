package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	fenced  = regexp.MustCompile("(?s)```.*?```")
	// pageName is how code names a page.
	pageName = regexp.MustCompile(`\bdocs/[a-z-]+\.md(#[\pL\pN_-]+)?`)
	// notInAnchor is what GitHub leaves out when it makes the anchor of a heading.
	notInAnchor = regexp.MustCompile(`[^\pL\pN _-]`)
)

// TestDocs_LinksLeadSomewhere follows the links of all documents to files and headings of the repository.
func TestDocs_LinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	followed := 0
	must(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range link.FindAllStringSubmatch(fenced.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(match[1], "://") || strings.HasPrefix(match[1], "mailto:") {
				continue
			}
			followed++
			target, anchor, _ := strings.Cut(match[1], "#")
			file := path
			if target != "" {
				file = filepath.Join(filepath.Dir(path), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %s: there is no such file", path, match[1])
			} else if anchor != "" && !anchorsOf(t, file)[anchor] {
				t.Errorf("%s: %s: there is no such heading", path, match[1])
			}
		}
		return err
	}))
	if followed < 100 {
		t.Errorf("%d links", followed)
	}
}

// TestDocs_CodeNamesPagesThatExist: comments, errors and advice lead to pages of docs, and to headings of them.
func TestDocs_CodeNamesPagesThatExist(t *testing.T) {
	t.Parallel()
	named := 0
	eachGoFile(t, func(path string) {
		text := check.Value(os.ReadFile(path))(t)
		for _, name := range pageName.FindAllString(string(text), -1) {
			named++
			page, anchor, _ := strings.Cut(name, "#")
			if _, err := os.Stat(page); err != nil {
				t.Errorf("%s: %s: there is no such page", path, name)
			} else if anchor != "" && !anchorsOf(t, page)[anchor] {
				t.Errorf("%s: %s: there is no such heading", path, name)
			}
		}
	})
	if named < 50 {
		t.Errorf("%d names of pages", named)
	}
}

// TestDocs_IndexLeadsToEveryPage: docs/README.md leads to every page beside it.
func TestDocs_IndexLeadsToEveryPage(t *testing.T) {
	t.Parallel()
	index := check.Value(os.ReadFile("docs/README.md"))(t)
	pages := check.Value(filepath.Glob("docs/*.md"))(t)
	for _, page := range pages {
		if name := filepath.Base(page); name != "README.md" && !strings.Contains(string(index), "]("+name+")") {
			t.Errorf("docs/README.md has no link to %s", name)
		}
	}
}

// TestDocs_PagesNameTheirImports: what a page's Go code uses has its import path on that page. The folders have other
// names than a reader would guess, and so has what the go command suggests.
func TestDocs_PagesNameTheirImports(t *testing.T) {
	t.Parallel()
	paths := make(map[string]string) // of packages, by name
	for _, folder := range []string{".", "adapters/*", "cleanup", "dialect", "drivers/*", "migrations", "monitor/page", "observe", "sqllocktest", "sync/*"} {
		for _, directory := range check.Value(filepath.Glob(folder))(t) {
			_, err := os.Stat(filepath.Join(directory, "go.mod")) // that of another library's adapter
			if files, _ := filepath.Glob(filepath.Join(directory, "*.go")); len(files) > 0 && (err != nil || directory == ".") {
				path := strings.TrimSuffix("github.com/sqllock/sqllock/"+filepath.ToSlash(directory), "/.")
				paths[filepath.Base(path)] = path
			}
		}
	}
	pages, used := check.Value(filepath.Glob("docs/*.md"))(t), 0
	for _, page := range append(pages, "README.md") {
		if name := filepath.Base(page); name == "design.md" {
			continue // for those who work on sqllock
		}
		text := string(check.Value(os.ReadFile(page))(t))
		code := strings.Join(goBlock.FindAllString(text, -1), "\n")
		for name, path := range paths {
			if !regexp.MustCompile(`(^|[^\w.])` + name + `\.[A-Z]`).MatchString(code) {
				continue
			}
			used++
			if !strings.Contains(text, "`"+path+"`") && !strings.Contains(text, `"`+path+`"`) {
				t.Errorf("%s: the import path %s is missing", page, path)
			}
		}
	}
	if used < 30 {
		t.Errorf("%d packages are used", used)
	}
}

// anchorsOf returns the anchors of the headings of a document.
func anchorsOf(t *testing.T, path string) map[string]bool {
	t.Helper()
	text := check.Value(os.ReadFile(path))(t)
	anchors := make(map[string]bool)
	for _, match := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(string(text), ""), -1) {
		title := link.ReplaceAllString(match[1], "]")
		anchors[strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(title), ""), " ", "-")] = true
	}
	return anchors
}

// TestDocs_OperationsNameEveryError: each sentinel has a line with its cause and its cure.
func TestDocs_OperationsNameEveryError(t *testing.T) {
	t.Parallel()
	page := check.Value(os.ReadFile("docs/operations.md"))(t)
	api := check.Value(os.ReadFile("testdata/api/sqllock.txt"))(t)
	for _, sentinel := range regexp.MustCompile(`\bErr[A-Z]\w*`).FindAllString(string(api), -1) {
		if !strings.Contains(string(page), "`"+sentinel+"`") {
			t.Errorf("docs/operations.md says nothing about %s", sentinel)
		}
	}
}
