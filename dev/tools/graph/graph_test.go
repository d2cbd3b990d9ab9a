package main

import (
	"slices"
	"strings"
	"testing"
)

// graphOf makes a graph of words such as "ab", an edge from a to b.
func graphOf(edges ...string) *graph {
	g := newGraph()
	for _, e := range edges {
		from, to := e[:1], e[1:]
		g.addNode(from)
		g.addNode(to)
		g.add(edge{from, to}, "name")
	}
	return g
}

func TestComponents(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		edges, components, shortest string
		cyclic                      int
	}{
		{"ab bc ac", "", "", 0},
		{"ab ba bc", "ab", "ab ba", 2},
		{"ab bc ca cd dc da", "abcd", "cd dc", 6},
		{"ab bc ca cd de ed", "abc de", "ab bc ca", 5},
	} {
		g := graphOf(strings.Fields(test.edges)...)
		var components []string
		for _, component := range g.components() {
			components = append(components, strings.Join(component, ""))
		}
		if got := strings.Join(components, " "); got != test.components {
			t.Errorf("%s: components %q, want %q", test.edges, got, test.components)
		}
		if got := len(g.cyclicEdges()); got != test.cyclic {
			t.Errorf("%s: %d edges in cycles, want %d", test.edges, got, test.cyclic)
		}
		if test.shortest != "" {
			testShortest(t, g, test.shortest)
		}
	}
}

func testShortest(t *testing.T, g *graph, want string) {
	t.Helper()
	var got []string
	for _, e := range g.shortestCycle(g.components()[0]) {
		got = append(got, e.from+e.to)
	}
	slices.Sort(got)
	if got := strings.Join(got, " "); got != want {
		t.Errorf("the shortest cycle is %q, want %q", got, want)
	}
}

func TestAddKeepsEachNameOnce(t *testing.T) {
	t.Parallel()
	g := newGraph("a", "b")
	for _, name := range []string{"y", "x", "y"} {
		g.add(edge{"a", "b"}, name)
		g.add(edge{"a", "a"}, name)
	}
	if got := g.describe(edge{"a", "b"}); got != "a → b: x, y" {
		t.Errorf("got %q", got)
	}
	if len(g.names) != 1 {
		t.Errorf("%d edges, want 1: a node does not refer to itself", len(g.names))
	}
}
