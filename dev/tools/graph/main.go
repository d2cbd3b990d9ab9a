// Graph prints which file of a package refers to which other file of it, and which
// package of the module imports which. It exits with 1 if the graph breaks a rule
// below. `make graph` runs it.
//
// # The graph
//
// An edge leads from a file that uses a name to the file that declares it. A method
// or field belongs to the file that declares it, whatever file declares its type.
// A promoted method or field leads to its own declaration, not to the embedded
// field. A value whose type is never named leads nowhere. Test files do not count.
//
// A line of the output is a file, the files that it refers to, and by how many
// names:
//
//	acquire.go → answer.go(3) retry.go(2)
//
// With -names, each edge has a line of its own, with the names. Files that can all
// reach each other are a cycle (a strongly connected component). Cycles are numbered
// and listed after the files of their package. For imports, the nodes are packages
// and the names are the files that import.
//
// # The rules
//
// They are in three text files beside this one, which are compiled in.
//
//   - packages.txt: the packages whose files are checked, each with a budget. A
//     package with budget 0 may have no cycle.
//   - imports.txt: which package may import which other package of the module, on
//     Linux, macOS and Windows. A package without a row is an error.
//   - exceptions.txt: edges that are allowed all the same, each with a reason. An
//     exception that the rules do not need is an error.
//
// # The budget
//
// A package that still has many cycles is given a budget: the number of its edges
// in cycles. An edge is in a cycle if the file it leads to leads back, directly or
// through other files. The number must be met exactly. A higher count is an error;
// so is a lower one until packages.txt has the new number, because a budget with
// room in it would let the package get worse again.
//
// Why this number: it depends on the graph alone, and removing an edge never raises
// it. A number of "back edges" would depend on an order of the files, and the
// smallest number over all orders is too hard to compute. The number of files in
// cycles hardly moves until a file leaves its cycle; it is printed, not checked.
// The budget does not see one edge replaced by another, and splitting a file can
// raise it. Raising it in packages.txt is a decision for the review.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("graph: ")
	dir := flag.String("dir", "../..", "the root `directory` of the module")
	names := flag.Bool("names", false, "print the names that make each edge")
	flag.Usage = usage
	flag.Parse()
	rules, err := readRules(packagesFile, exceptionsFile, importsFile)
	if err != nil {
		log.Fatal(err)
	}
	r := runner{dir: *dir, names: *names, rules: rules}
	if err := r.run(flag.Args()); err != nil {
		log.Fatal(err)
	}
	for _, problem := range r.problems {
		log.Print(problem)
	}
	if len(r.problems) > 0 {
		os.Exit(1)
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: graph [-dir directory] [-names] [package ...]\n\n"+
		"Packages are named by their directories. Without any, those of packages.txt\n"+
		"are checked, and the imports of the whole module.")
	flag.PrintDefaults()
}

// A runner loads, prints and checks the graphs.
type runner struct {
	dir      string
	names    bool
	rules    *rules
	problems []string
}

func (r *runner) run(packages []string) error {
	if len(packages) > 0 {
		return r.files(packages)
	}
	if err := r.files(r.rules.packages); err != nil {
		return err
	}
	return r.imports()
}

func (r *runner) files(packages []string) error {
	for _, pkg := range packages {
		g, err := loadFiles(r.dir, pkg)
		if err != nil {
			return err
		}
		fmt.Println(filesText(pkg, g, r.names))
		r.problems = append(r.problems, checkFiles(pkg, g, r.rules)...)
	}
	return nil
}

func (r *runner) imports() error {
	g, err := loadImports(r.dir)
	if err != nil {
		return err
	}
	fmt.Println(importsText(g, r.names))
	r.problems = append(r.problems, checkImports(g, r.rules)...)
	return nil
}
