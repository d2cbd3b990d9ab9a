package main

import (
	"cmp"
	"maps"
	"slices"
)

// An edge leads from a file or package to one that it refers to.
type edge struct{ from, to string }

// A graph holds files or packages, and the names by which they refer to each
// other. It is small, so every question is answered by a search.
type graph struct {
	nodes []string
	names map[edge][]string
}

func newGraph(nodes ...string) *graph {
	return &graph{nodes: slices.Sorted(slices.Values(nodes)), names: map[edge][]string{}}
}

// addNode adds a node, unless g has it.
func (g *graph) addNode(node string) {
	if at, found := slices.BinarySearch(g.nodes, node); !found {
		g.nodes = slices.Insert(g.nodes, at, node)
	}
}

// add notes that e.from refers to e.to by name.
func (g *graph) add(e edge, name string) {
	if e.from == e.to {
		return
	}
	if at, found := slices.BinarySearch(g.names[e], name); !found {
		g.names[e] = slices.Insert(g.names[e], at, name)
	}
}

// without returns a copy of g that lacks some edges.
func (g *graph) without(edges ...edge) *graph {
	rest := &graph{nodes: g.nodes, names: maps.Clone(g.names)}
	for _, e := range edges {
		delete(rest.names, e)
	}
	return rest
}

// edges returns all edges, in order.
func (g *graph) edges() []edge {
	return slices.SortedFunc(maps.Keys(g.names), func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
}

// next returns what a node refers to, in order.
func (g *graph) next(node string) []string {
	var next []string
	for e := range g.names {
		if e.from == node {
			next = append(next, e.to)
		}
	}
	slices.Sort(next)
	return next
}

// path returns the nodes on a shortest way between two, both included, or nil.
func (g *graph) path(from, to string) []string {
	seen := map[string]bool{from: true}
	for ways := [][]string{{from}}; len(ways) > 0; ways = ways[1:] {
		way := ways[0]
		last := way[len(way)-1]
		if last == to {
			return way
		}
		for _, next := range g.next(last) {
			if !seen[next] {
				seen[next] = true
				ways = append(ways, append(slices.Clip(way), next))
			}
		}
	}
	return nil
}

// cyclic reports whether an edge between these nodes lies, or would lie, in a cycle.
func (g *graph) cyclic(e edge) bool {
	return g.path(e.to, e.from) != nil
}

// cyclicEdges returns the edges that lie in cycles, in order.
func (g *graph) cyclicEdges() []edge {
	return slices.DeleteFunc(g.edges(), func(e edge) bool { return !g.cyclic(e) })
}

// components returns the strongly connected components of more than one node.
func (g *graph) components() [][]string {
	var components [][]string
	seen := map[string]bool{}
	for _, node := range g.nodes {
		if seen[node] {
			continue
		}
		component := g.component(node)
		for _, member := range component {
			seen[member] = true
		}
		if len(component) > 1 {
			components = append(components, component)
		}
	}
	return components
}

// component returns the nodes that node reaches and that reach it, itself included.
func (g *graph) component(node string) []string {
	var members []string
	for _, other := range g.nodes {
		if g.path(node, other) != nil && g.path(other, node) != nil {
			members = append(members, other)
		}
	}
	return members
}

// shortestCycle returns the edges of a shortest cycle through nodes of a component.
func (g *graph) shortestCycle(component []string) []edge {
	var shortest []string
	for _, e := range g.edges() {
		if !slices.Contains(component, e.from) {
			continue
		}
		back := g.path(e.to, e.from)
		if back != nil && (shortest == nil || len(back) < len(shortest)) {
			shortest = back
		}
	}
	var cycle []edge
	for i, node := range shortest {
		cycle = append(cycle, edge{node, shortest[(i+1)%len(shortest)]})
	}
	return cycle
}
