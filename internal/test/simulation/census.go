package simulation

import (
	"reflect"
	"strings"
)

// A census counts what the library keeps in memory and can be reached from a value through its
// types: the elements of maps, slices and channels, and structs behind pointers.
type census struct {
	seen     map[uintptr]bool
	elements map[string]int // by the type of the map, and so on
}

// elementsOf counts what v keeps, by type. Nothing may change meanwhile.
func elementsOf(v any) map[string]int {
	c := census{seen: make(map[uintptr]bool), elements: make(map[string]int)}
	c.count(reflect.ValueOf(v))
	return c.elements
}

func (c *census) count(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || c.seen[v.Pointer()] {
			return
		}
		c.seen[v.Pointer()] = true
		c.elements[v.Type().String()]++
		c.count(v.Elem())
	case reflect.Interface:
		if !v.IsNil() {
			c.count(v.Elem())
		}
	case reflect.Struct:
		if pkg := v.Type().PkgPath(); !strings.HasPrefix(pkg, "github.com/sqllock/sqllock") || strings.Contains(pkg, "/internal/test/") {
			return
		}
		for i := range v.NumField() {
			c.count(v.Field(i))
		}
	case reflect.Map:
		if v.IsNil() || c.seen[v.Pointer()] {
			return
		}
		c.seen[v.Pointer()] = true
		c.elements[v.Type().String()] += v.Len()
		for each := v.MapRange(); each.Next(); {
			c.count(each.Value())
		}
	case reflect.Slice:
		c.elements[v.Type().String()] += v.Len()
		c.countEach(v)
	case reflect.Array:
		c.countEach(v)
	case reflect.Chan:
		c.elements[v.Type().String()] += v.Len()
	default:
	}
}

func (c *census) countEach(list reflect.Value) {
	for i := range list.Len() {
		c.count(list.Index(i))
	}
}
