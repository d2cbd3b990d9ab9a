package sqltext

import (
	"reflect"
	"slices"
)

// numberIn returns the vendor's error number from err's chain: the result of the method
// or the value of the field with the given name. The drivers have no interface for it in
// common (go-sql-driver/mysql and mattn/go-sqlite3 have a field, modernc.org/sqlite has a
// method), and importing a driver here would link it into every application.
func numberIn(err error, name string) (n int64, ok bool) {
	ok = anyIn(err, func(err error) (found bool) {
		n, found = numberOf(err, name)
		return found
	})
	return n, ok
}

// anyIn reports whether an error of err's chain is what is looked for.
func anyIn(err error, is func(error) bool) bool {
	for err != nil {
		if is(err) {
			return true
		}
		switch e := err.(type) { //nolint:errorlint // this loop walks the chain
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			return slices.ContainsFunc(e.Unwrap(), func(branch error) bool { return anyIn(branch, is) })
		default:
			return false
		}
	}
	return false
}

// fieldOf returns a text of an error of PostgreSQL, such as Detail, which both drivers have, or "".
func fieldOf(err error, name string) string {
	v := reflect.Indirect(reflect.ValueOf(err))
	if v.Kind() != reflect.Struct {
		return ""
	}
	if field := v.FieldByName(name); field.IsValid() && field.Kind() == reflect.String {
		return field.String()
	}
	return ""
}

// sqliteCode is the method of modernc.org/sqlite, and the field of mattn/go-sqlite3.
const sqliteCode = "Code"

func numberOf(err error, name string) (int64, bool) {
	v := reflect.ValueOf(err)
	if name == sqliteCode {
		// The name must be a constant: for any other, the linker keeps all exported methods of
		// all types of the application, which is megabytes.
		method := v.MethodByName(sqliteCode)
		if method.IsValid() && method.Type().NumIn() == 0 && method.Type().NumOut() == 1 {
			return integer(method.Call(nil)[0])
		}
	}
	v = reflect.Indirect(v)
	if v.Kind() != reflect.Struct {
		return 0, false
	}
	return integer(v.FieldByName(name))
}

func integer(v reflect.Value) (int64, bool) {
	switch {
	case !v.IsValid():
		return 0, false
	case v.CanInt():
		return v.Int(), true
	case v.CanUint():
		return int64(v.Uint()), true //nolint:gosec // error numbers have two bytes
	default:
		return 0, false
	}
}
