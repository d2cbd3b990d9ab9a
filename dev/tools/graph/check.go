package main

import (
	"fmt"
	"strings"
)

// checkFiles returns what breaks the rules in the graph of a package's files.
func checkFiles(pkg string, g *graph, r *rules) []string {
	rest, problems := except(pkg, g, r.exceptionsOf(pkg))
	count, budget := len(rest.cyclicEdges()), r.budgets[pkg]
	switch {
	case count > 0 && budget == 0:
		problems = append(problems, cycles(pkg, rest)...)
	case count > budget:
		problems = append(problems, fmt.Sprintf(
			"package %s: %d edges in cycles, packages.txt allows %d; compare the output of -names with that of the parent commit",
			pkg, count, budget))
	case count < budget:
		problems = append(problems, fmt.Sprintf(
			"package %s: only %d edges in cycles, write this number into packages.txt instead of %d",
			pkg, count, budget))
	}
	return problems
}

// except returns g without the exceptions, and a problem for each that is stale. An
// exception is needed if its edge is in a cycle that no other exception breaks. Of
// two that break the same cycles, the first is stale.
func except(pkg string, g *graph, exceptions []exception) (rest *graph, problems []string) {
	rest = g
	for _, x := range exceptions {
		rest = rest.without(x.edge)
	}
	for _, x := range exceptions {
		names, exists := g.names[x.edge]
		switch {
		case !exists:
			problems = append(problems, stale(x, fmt.Sprintf("package %s: %s does not refer to %s", pkg, x.edge.from, x.edge.to)))
		case !rest.cyclic(x.edge):
			problems = append(problems, stale(x, fmt.Sprintf("package %s: no cycle needs %s", pkg, g.describe(x.edge))))
			rest.names[x.edge] = names
		}
	}
	return rest, problems
}

func stale(x exception, why string) string {
	return fmt.Sprintf("%s; remove the exception %q from exceptions.txt", why, x.reason)
}

// cycles returns a problem for each component: one of its shortest cycles.
func cycles(pkg string, g *graph) []string {
	var problems []string
	for _, component := range g.components() {
		lines := []string{"package " + pkg + ": a cycle between files, which exceptions.txt does not allow"}
		for _, e := range g.shortestCycle(component) {
			lines = append(lines, "\t"+g.describe(e))
		}
		problems = append(problems, strings.Join(lines, "\n"))
	}
	return problems
}

// checkImports returns what breaks the rules in the graph of a module's packages.
func checkImports(g *graph, r *rules) []string {
	problems := checkTable(r)
	for _, pkg := range g.nodes {
		if _, ok := r.row(pkg); !ok {
			problems = append(problems, "package "+pkg+" has no row in imports.txt")
		}
	}
	rest := g
	for _, x := range r.exceptionsOf(theImports) {
		rest = rest.without(x.edge)
		if why := unneeded(g, r, x.edge); why != "" {
			problems = append(problems, stale(x, why))
		}
	}
	for _, e := range rest.edges() {
		if !r.allows(e) {
			problems = append(problems, "imports.txt does not allow "+rest.describe(e))
		}
	}
	return problems
}

// unneeded says why an import needs no exception, or nothing if it does need one.
func unneeded(g *graph, r *rules, e edge) string {
	if _, exists := g.names[e]; !exists {
		return fmt.Sprintf("package %s does not import %s", e.from, e.to)
	}
	if r.allows(e) {
		return fmt.Sprintf("imports.txt allows %s → %s", e.from, e.to)
	}
	return ""
}

// checkTable returns the cycles of imports.txt itself. The compiler rejects a cycle
// of imports, but not a table that allows an import in both directions.
func checkTable(r *rules) []string {
	var packages []string
	for _, row := range r.imports {
		packages = append(packages, row.pkg)
	}
	g := newGraph(packages...)
	for _, row := range r.imports {
		for _, allowed := range row.allowed {
			g.add(edge{row.pkg, allowed}, "imports.txt")
		}
	}
	var problems []string
	for _, component := range g.components() {
		problems = append(problems, "imports.txt allows a cycle of "+strings.Join(component, " "))
	}
	return problems
}
