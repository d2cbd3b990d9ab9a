package main

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// loadFiles returns the graph of the files of a package of the module in dir.
func loadFiles(dir, pkg string) (*graph, error) {
	loaded, err := load(dir, &packages.Config{Mode: packages.LoadSyntax}, "./"+pkg)
	if err != nil {
		return nil, err
	}
	if len(loaded) != 1 {
		return nil, fmt.Errorf("%s: %d packages instead of one", pkg, len(loaded))
	}
	if err := sameEverywhere(loaded[0]); err != nil {
		return nil, err
	}
	return references(loaded[0]), nil
}

// sameEverywhere returns an error if the package has files for other systems: the
// graph would lack them.
func sameEverywhere(pkg *packages.Package) error {
	for _, file := range pkg.IgnoredFiles {
		if strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") {
			return fmt.Errorf("%s is not built on this system, so the graph of its package is not complete", file)
		}
	}
	return nil
}

// systems are those for which `make cross` compiles the module.
var systems = []string{"linux", "darwin", "windows"}

// loadImports returns the graph of the packages of the module in dir. The names of
// an edge are the files that import.
func loadImports(dir string) (*graph, error) {
	module := newGraph()
	for _, system := range systems {
		config := &packages.Config{
			Mode: packages.NeedName | packages.NeedFiles | packages.NeedModule,
			Env:  append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"),
		}
		loaded, err := load(dir, config, "./...")
		if err != nil {
			return nil, err
		}
		if err := addImports(module, loaded); err != nil {
			return nil, err
		}
	}
	return module, nil
}

// addImports adds packages of one module, and the imports between them, to g.
func addImports(g *graph, loaded []*packages.Package) error {
	short := map[string]string{}
	for _, pkg := range loaded {
		short[pkg.PkgPath] = shortName(pkg.Module.Path, pkg.PkgPath)
		g.addNode(short[pkg.PkgPath])
	}
	for _, pkg := range loaded {
		for _, file := range pkg.GoFiles {
			paths, err := importsOf(file)
			if err != nil {
				return err
			}
			for _, path := range paths {
				if to, inModule := short[path]; inModule {
					g.add(edge{short[pkg.PkgPath], to}, filepath.Base(file))
				}
			}
		}
	}
	return nil
}

// shortName is a package's directory in its module, and "." for the root.
func shortName(module, path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}

// importsOf returns the import paths of a file.
func importsOf(file string) ([]string, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, spec := range parsed.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// load loads packages. What does not compile is an error.
func load(dir string, config *packages.Config, pattern string) ([]*packages.Package, error) {
	config.Dir = dir
	loaded, err := packages.Load(config, pattern)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, pkg := range loaded {
		for _, err := range pkg.Errors {
			errs = append(errs, err)
		}
	}
	return loaded, errors.Join(errs...)
}
