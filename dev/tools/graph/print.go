package main

import (
	"fmt"
	"strings"
)

// filesText is the text of the graph of a package's files.
func filesText(pkg string, g *graph, names bool) string {
	components := g.components()
	inCycles := 0
	for _, component := range components {
		inCycles += len(component)
	}
	text := fmt.Sprintf("%s: %d files, %d edges; in cycles: %d files, %d edges\n",
		pkg, len(g.nodes), len(g.names), inCycles, len(g.cyclicEdges()))
	text += g.lines(names)
	for i, component := range components {
		text += fmt.Sprintf("  cycle %d: %s\n", i+1, strings.Join(component, " "))
	}
	return text
}

// importsText is the text of the graph of a module's packages.
func importsText(g *graph, names bool) string {
	return fmt.Sprintf("imports: %d packages, %d edges\n", len(g.nodes), len(g.names)) + g.lines(names)
}

// lines is a line for each node, or for each edge with its names.
func (g *graph) lines(names bool) string {
	var text strings.Builder
	if names {
		for _, e := range g.edges() {
			fmt.Fprintln(&text, "  "+g.describe(e))
		}
		return text.String()
	}
	for _, node := range g.nodes {
		fmt.Fprintln(&text, "  "+g.line(node))
	}
	return text.String()
}

// line is a node and what it refers to, with the number of names.
func (g *graph) line(node string) string {
	next := g.next(node)
	if len(next) == 0 {
		return node
	}
	line := node + " →"
	for _, to := range next {
		line += fmt.Sprintf(" %s(%d)", to, len(g.names[edge{node, to}]))
	}
	return line
}

// describe is an edge and its names.
func (g *graph) describe(e edge) string {
	return fmt.Sprintf("%s → %s: %s", e.from, e.to, strings.Join(g.names[e], ", "))
}
