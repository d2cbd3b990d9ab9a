package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// A released is a line of modules.txt.
type released struct{ dir, version string }

// tag returns the tag that Go expects for the version of a module.
func (r released) tag() string {
	if r.dir == "." {
		return r.version
	}
	return r.dir + "/" + r.version
}

// tag prints the tags that are due, in their order, and makes them if write is set. It stops at the
// first module that cannot be tagged yet: one that requires a version of another module that has no tag.
func tag(ctx context.Context, w io.Writer, git checkout, write bool) error {
	modules, err := readModules(git.dir)
	if err != nil {
		return err
	}
	if err := tidy(ctx, git, modules); err != nil {
		return err
	}
	var due []string
	var text strings.Builder
	for _, module := range modules {
		exists, err := git.git(ctx, "tag", "--list", module.tag())
		if err != nil {
			return err
		}
		if exists != "" {
			text.WriteString(module.tag() + "\texists\n")
			continue
		}
		if err := ready(ctx, git, module, modules); err != nil {
			text.WriteString(module.tag() + "\tlater: " + err.Error() + "\n")
			break
		}
		due = append(due, module.tag())
		text.WriteString(module.tag() + "\tdue\n")
	}
	if write && len(due) > 0 {
		if err := makeTags(ctx, git, due); err != nil {
			return err
		}
		text.WriteString("tagged. To publish: git push origin " + strings.Join(due, " ") + "\n")
	}
	_, err = io.WriteString(w, text.String())
	return err
}

func makeTags(ctx context.Context, git checkout, names []string) error {
	for _, name := range names {
		if _, err := git.git(ctx, "tag", "--annotate", "--message", "sqllock "+name, name); err != nil {
			return err
		}
	}
	return nil
}

var line = regexp.MustCompile(`^(\S+)\s+(\S+)$`)

func readModules(root string) (modules []released, err error) {
	const name = "dev/tools/release/modules.txt"
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return nil, err
	}
	for row := range strings.Lines(string(text)) {
		row, _, _ = strings.Cut(row, "#")
		if row = strings.TrimSpace(row); row == "" {
			continue
		}
		fields := line.FindStringSubmatch(row)
		if fields == nil || semver.Canonical(fields[2]) != fields[2] {
			return nil, fmt.Errorf("%s: %q is not a directory and a version", name, row)
		}
		modules = append(modules, released{fields[1], fields[2]})
	}
	return modules, nil
}

// tidy reports what must be put right before anything is tagged.
func tidy(ctx context.Context, git checkout, modules []released) error {
	changes, err := git.changes(ctx)
	if err != nil {
		return err
	}
	if changes != "" {
		return fmt.Errorf("the tree differs from the commit:\n%s", changes)
	}
	var errs []error
	for _, module := range modules {
		if _, err := command(ctx, filepath.Join(git.dir, module.dir), nil, "go", "mod", "tidy", "-diff"); err != nil {
			errs = append(errs, err)
		}
	}
	changelog, err := os.ReadFile(filepath.Join(git.dir, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	for _, module := range modules {
		heading := "## [" + strings.TrimPrefix(module.version, "v") + "]"
		if module.dir == "." && !strings.Contains("\n"+string(changelog), "\n"+heading) {
			errs = append(errs, fmt.Errorf("CHANGELOG.md has no section %q", heading))
		}
	}
	return errors.Join(errs...)
}

// ready returns why a module cannot be tagged yet, or nil.
func ready(ctx context.Context, git checkout, module released, modules []released) error {
	name := filepath.Join(git.dir, module.dir, "go.mod")
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	file, err := modfile.Parse(name, text, nil)
	if err != nil {
		return err
	}
	if len(file.Replace) > 0 {
		return errors.New("its go.mod has a replace directive, which go install refuses")
	}
	for _, required := range file.Require {
		for _, other := range modules {
			path, err := pathOf(git, other)
			if err != nil {
				return err
			}
			if required.Mod.Path != path {
				continue
			}
			needed := released{other.dir, required.Mod.Version}.tag()
			if exists, err := git.git(ctx, "tag", "--list", needed); err != nil || exists == "" {
				return errors.Join(err, fmt.Errorf("it requires %s, which has no tag", needed))
			}
			if required.Mod.Version != other.version {
				return fmt.Errorf("it requires %s %s: first go -C %s get %s@%s, and commit", path, required.Mod.Version, module.dir, path, other.version)
			}
		}
	}
	return nil
}

// pathOf returns the module path of a released module.
func pathOf(git checkout, module released) (string, error) {
	text, err := os.ReadFile(filepath.Join(git.dir, module.dir, "go.mod"))
	return modfile.ModulePath(text), err
}
