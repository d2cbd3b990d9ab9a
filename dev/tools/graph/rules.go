package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

var (
	//go:embed packages.txt
	packagesFile string
	//go:embed exceptions.txt
	exceptionsFile string
	//go:embed imports.txt
	importsFile string
)

// theImports is the name of the graph of imports in exceptions.txt.
const theImports = "imports"

// rules say what the graphs may be like.
type rules struct {
	packages   []string
	budgets    map[string]int
	exceptions []exception
	imports    []importRow
}

// An exception allows an edge of a graph, which is a package or theImports.
type exception struct {
	graph  string
	edge   edge
	reason string
}

// An importRow says what a package, or all those of a pattern, may import.
type importRow struct {
	pkg     string
	allowed []string
}

// readRules reads the three files.
func readRules(packages, exceptions, imports string) (*rules, error) {
	r := &rules{budgets: map[string]int{}}
	for _, file := range []struct {
		name, text string
		row        func(string) error
	}{
		{"packages.txt", packages, r.addPackage},
		{"exceptions.txt", exceptions, r.addException},
		{"imports.txt", imports, r.addImports},
	} {
		if err := eachRow(file.text, file.row); err != nil {
			return nil, fmt.Errorf("%s: %w", file.name, err)
		}
	}
	return r, nil
}

// eachRow gives a function the lines of a text that are neither blank nor comments.
func eachRow(text string, add func(string) error) error {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if err := add(line); err != nil {
			return fmt.Errorf("%q: %w", line, err)
		}
	}
	return nil
}

// addPackage reads "package budget".
func (r *rules) addPackage(row string) error {
	pkg, text, _ := strings.Cut(row, " ")
	budget, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || budget < 0 {
		return fmt.Errorf("want a package and a budget, 0 or more")
	}
	if slices.Contains(r.packages, pkg) {
		return fmt.Errorf("a second row for %s", pkg)
	}
	r.packages = append(r.packages, pkg)
	r.budgets[pkg] = budget
	return nil
}

// addException reads "graph from to reason", where the reason is the rest of the row.
func (r *rules) addException(row string) error {
	fields := strings.Fields(row)
	if len(fields) < 4 {
		return fmt.Errorf("want a package, two files and a reason, or %q, two packages and a reason", theImports)
	}
	if fields[0] != theImports && !slices.Contains(r.packages, fields[0]) {
		return fmt.Errorf("%s is not in packages.txt", fields[0])
	}
	x := exception{graph: fields[0], edge: edge{fields[1], fields[2]}, reason: strings.Join(fields[3:], " ")}
	if slices.ContainsFunc(r.exceptionsOf(x.graph), func(other exception) bool { return other.edge == x.edge }) {
		return fmt.Errorf("a second exception for the same edge")
	}
	r.exceptions = append(r.exceptions, x)
	return nil
}

// addImports reads "package: package package …".
func (r *rules) addImports(row string) error {
	pkg, allowed, ok := strings.Cut(row, ":")
	if !ok {
		return fmt.Errorf("want a package, a colon, and the packages that it may import")
	}
	r.imports = append(r.imports, importRow{pkg, strings.Fields(allowed)})
	return nil
}

// exceptionsOf returns the exceptions for one graph.
func (r *rules) exceptionsOf(graph string) []exception {
	return slices.DeleteFunc(slices.Clone(r.exceptions), func(x exception) bool { return x.graph != graph })
}

// row returns the first row of imports.txt that covers a package.
func (r *rules) row(pkg string) (importRow, bool) {
	i := slices.IndexFunc(r.imports, func(row importRow) bool { return covers(row.pkg, pkg) })
	if i < 0 {
		return importRow{}, false
	}
	return r.imports[i], true
}

// allows reports whether imports.txt allows an import.
func (r *rules) allows(e edge) bool {
	row, _ := r.row(e.from)
	return slices.ContainsFunc(row.allowed, func(pattern string) bool { return covers(pattern, e.to) })
}

// covers reports whether a pattern names a package: "a/..." names a and all below it.
func covers(pattern, pkg string) bool {
	if above, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == above || strings.HasPrefix(pkg, above+"/")
	}
	return pkg == pattern
}
