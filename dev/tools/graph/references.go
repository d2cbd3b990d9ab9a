package main

import (
	"go/token"
	"go/types"
	"path/filepath"

	"golang.org/x/tools/go/packages"
)

// references returns the graph of the files of a loaded package.
func references(pkg *packages.Package) *graph {
	g := newGraph()
	for _, file := range pkg.Syntax {
		g.addNode(fileOf(pkg.Fset, file.Pos()))
	}
	owners := ownersIn(pkg.Types.Scope())
	for use, object := range pkg.TypesInfo.Uses {
		if object.Pkg() == pkg.Types {
			g.add(edge{fileOf(pkg.Fset, use.Pos()), fileOf(pkg.Fset, object.Pos())}, owners.name(object))
		}
	}
	return g
}

func fileOf(fset *token.FileSet, pos token.Pos) string {
	return filepath.Base(fset.Position(pos).Filename)
}

// owners maps a field or method to the name of its type.
type owners map[types.Object]string

func ownersIn(scope *types.Scope) owners {
	o := owners{}
	for _, name := range scope.Names() {
		object, ok := scope.Lookup(name).(*types.TypeName)
		if ok && !object.IsAlias() {
			o.addMembers(object)
		}
	}
	return o
}

func (o owners) addMembers(object *types.TypeName) {
	if named, ok := object.Type().(*types.Named); ok {
		for method := range named.Methods() {
			o[method] = object.Name()
		}
	}
	switch t := object.Type().Underlying().(type) {
	case *types.Struct:
		for field := range t.Fields() {
			o[field] = object.Name()
		}
	case *types.Interface:
		for method := range t.ExplicitMethods() {
			o[method] = object.Name()
		}
	}
}

// name returns T.m for a member of T, and other names as they are.
func (o owners) name(object types.Object) string {
	if owner, ok := o[origin(object)]; ok {
		return owner + "." + object.Name()
	}
	return object.Name()
}

// origin returns the declaration of a field or method: what an instance of a generic
// type has is a copy.
func origin(object types.Object) types.Object {
	switch object := object.(type) {
	case *types.Var:
		return object.Origin()
	case *types.Func:
		return object.Origin()
	}
	return object
}
